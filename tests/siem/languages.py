"""Rules of Elastic (EQL, KQL) and of Sigma as trees of terms.

Their own parsers read them: `eql` and `pySigma` from PyPI, `kql` from the checkout of Elastic's rules.
"""

import glob
import os
import re
import sys
import tomllib

import eql
import terms
from eql import ast as eql_ast
from eql.parser import (
    allow_runs,
    allow_sample,
    elasticsearch_syntax,
    elasticsearch_validate_optional_fields,
    ignore_missing_functions,
    skip_optimizations,
)
from sigma import types as sigma_types
from sigma.collection import SigmaCollection
from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
)
from terms import All, Any, Not


class Rule:
    """`stages`: (tree, names of the fields whose values the events of all stages share)."""

    def __init__(self, name, stages):
        self.name, self.stages = name, stages


def elastic_rules(checkout):
    """The rules of rules/linux and rules/cross-platform for data of Auditbeat and auditd_manager."""
    sys.path.insert(0, os.path.join(checkout, "lib", "kql"))
    found, unread = [], []
    for directory in ("linux", "cross-platform"):
        for path in sorted(glob.glob(os.path.join(checkout, "rules", directory, "*.toml"))):
            with open(path, "rb") as file:
                rule = tomllib.load(file)["rule"]
            query, language = rule.get("query", ""), rule.get("language")
            indices = " ".join(rule.get("index") or [])
            if not re.search(r"auditbeat|auditd_manager", indices + query):
                continue
            name = directory + "/" + os.path.basename(path).removesuffix(".toml")
            try:
                if language == "eql":
                    found.append(Rule(name, of_eql(query)))
                elif language == "kuery":
                    import kql

                    # What rules group by has to be in an event.
                    grouped = (
                        rule.get("new_terms", {}).get("value")
                        or rule.get("threshold", {}).get("field")
                        or []
                    )
                    tree = of_kql(kql.parse(query, optimize=False))
                    found.append(
                        Rule(name, [(All([tree] + [terms.exists(field) for field in grouped]), [])])
                    )
                else:
                    unread.append((name, f"language {language}"))
            except Exception as error:  # whatever a parser raises is a rule that was not read
                unread.append((name, repr(error)))
    return found, unread


def of_eql(query):
    with (
        elasticsearch_syntax,
        ignore_missing_functions,
        elasticsearch_validate_optional_fields,
        allow_sample,
        allow_runs,
        skip_optimizations,
    ):
        parsed = eql.parse_query(query, implied_any=True)
    first = parsed.first
    if isinstance(first, eql_ast.EventQuery):
        return [(of_event(first), [])]
    stages = []
    for part in first.queries:
        stages.append((of_event(part.query), [value.render() for value in part.join_values]))
    return stages


def of_event(event):
    tree = of_eql_term(event.query)
    if event.event_type == "any":
        return tree
    return All([terms.equals("event.category", event.event_type), tree])


def of_eql_term(node):
    if isinstance(node, eql_ast.And):
        return All([of_eql_term(term) for term in node.terms])
    if isinstance(node, eql_ast.Or):
        return Any([of_eql_term(term) for term in node.terms])
    if isinstance(node, eql_ast.Not):
        return Not(of_eql_term(node.term))
    if isinstance(node, eql_ast.IsNotNull):
        return terms.exists(place(node.expr))
    if isinstance(node, eql_ast.IsNull):
        return Not(terms.exists(place(node.expr)))
    if isinstance(node, eql_ast.InSet):
        return Any([terms.equals(place(node.expression), item.value) for item in node.container])
    if isinstance(node, eql_ast.Comparison):
        return of_comparison(node)
    if isinstance(node, eql_ast.FunctionCall):
        field, patterns = (
            place(node.arguments[0]),
            [argument.value for argument in node.arguments[1:]],
        )
        if node.name == "wildcard":
            return Any(
                [terms.matches(field, pattern.replace("\\", "\\\\")) for pattern in patterns]
            )
        if node.name == "match":
            return Any([terms.matches_regex(field, pattern, True, re.I) for pattern in patterns])
        if node.name == "cidrmatch":
            return terms.in_network(field, patterns)
    raise ValueError(f"no such term: {node}")


def of_comparison(node):
    operator, value = node.comparator, node.right.value
    if isinstance(node.left, eql_ast.FunctionCall) and node.left.name == "length":
        field = place(node.left.arguments[0])
        test = terms.compares(field, operator, value)
        return terms.Term(
            field, f"length {operator} {value}", lambda found: test.holds(len(str(found))), []
        )
    field = place(node.left)
    if operator == "==":
        return terms.equals(field, value)
    if operator == "!=":
        return Not(terms.equals(field, value))
    return terms.compares(field, operator, value)


def place(field):
    return field.render().lstrip("?")


def of_kql(node):
    kind = type(node).__name__
    if kind == "AndExpr":
        return All([of_kql(item) for item in node.items])
    if kind == "OrExpr":
        return Any([of_kql(item) for item in node.items])
    if kind == "NotExpr":
        return Not(of_kql(node.expr))
    if kind == "FieldComparison":
        return of_kql_value(node.field.name, node.value)
    if kind == "Exists":
        return terms.exists(node.field.name)
    if kind == "FieldRange":
        return terms.compares(node.field.name, node.operator, node.value.value)
    raise ValueError(f"no such term: {kind} {node}")


def of_kql_value(field, value):
    kind = type(value).__name__
    if kind == "OrValues":
        return Any([of_kql_value(field, item) for item in value.items])
    if kind == "AndValues":
        return All([of_kql_value(field, item) for item in value.items])
    if kind == "NotValue":
        return Not(of_kql_value(field, value.value))
    if kind == "Exists" or value.value == "*":
        return terms.exists(field)
    if kind == "Wildcard":
        return terms.matches(field, value.value)
    if isinstance(value.value, str) and re.fullmatch(r"[0-9a-f.:]+/[0-9]+", value.value):
        return terms.in_network(field, [value.value])
    return terms.equals(field, value.value)


def sigma_rules(checkout, category):
    """The rules under rules/linux/CATEGORY."""
    found, unread = [], []
    for path in sorted(
        glob.glob(os.path.join(checkout, "rules", "linux", category, "**", "*.yml"), recursive=True)
    ):
        name = f"{category}/" + os.path.basename(path).removesuffix(".yml")
        try:
            with open(path, encoding="utf-8") as file:
                rules = SigmaCollection.from_yaml(file.read()).rules
            trees = [
                of_sigma(condition.parsed)
                for rule in rules
                for condition in rule.detection.parsed_condition
            ]
            found.append(Rule(name, [(Any(trees), [])]))
        except Exception as error:
            unread.append((name, repr(error)))
    return found, unread


def of_sigma(node):
    if isinstance(node, ConditionAND):
        return All([of_sigma(item) for item in node.args])
    if isinstance(node, ConditionOR):
        return Any([of_sigma(item) for item in node.args])
    if isinstance(node, ConditionNOT):
        return Not(of_sigma(node.args[0]))
    field = node.field if isinstance(node, ConditionFieldEqualsValueExpression) else KEYWORD
    return of_sigma_value(field, node.value)


# What a rule without a field name looks for: a word anywhere in the event.
KEYWORD = "(anywhere)"


def of_sigma_value(field, value):
    if isinstance(value, sigma_types.SigmaString):
        pattern = ""
        for part in value.s:
            if isinstance(part, str):
                pattern += re.sub(r"([*?\\])", r"\\\1", part)
            else:
                pattern += "*" if part == sigma_types.SpecialChars.WILDCARD_MULTI else "?"
        if field == KEYWORD:
            pattern = f"*{pattern}*"
        return terms.matches(field, pattern)
    if isinstance(value, sigma_types.SigmaNumber):
        number = str(value.number)
        return (
            terms.matches(field, f"*{number}*") if field == KEYWORD else terms.equals(field, number)
        )
    if isinstance(value, sigma_types.SigmaRegularExpression):
        return terms.matches_regex(field, str(value.regexp), False)
    if isinstance(value, sigma_types.SigmaCIDRExpression):
        return terms.in_network(field, [value.cidr])
    raise ValueError(f"no such value: {type(value).__name__}")
