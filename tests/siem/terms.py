"""What a rule asks of an event, whatever language it is in: a tree of All, Any, Not, Term."""

import ipaddress
import random
import re
from re import _parser as regex_parser


class Term:
    """A comparison of one field. `holds` takes a value; `samples` are values it is made for."""

    def __init__(self, field, text, holds, samples):
        self.field, self.text, self.holds, self.samples = field, text, holds, samples

    def __repr__(self):
        return f"{self.field} {self.text}"


class All:
    def __init__(self, parts):
        self.parts = parts


class Any:
    def __init__(self, parts):
        self.parts = parts


class Not:
    def __init__(self, part):
        self.part = part


def equals(field, value, is_exact=True):
    value = text_of(value)
    if is_exact:
        return Term(field, f"= {value}", lambda found: text_of(found) == value, [value])
    return Term(field, f"= {value}", lambda found: text_of(found).lower() == value.lower(), [value])


def exists(field):
    return Term(field, "exists", lambda found: True, [])


def matches(field, pattern):
    """`*` is any text and `?` one character, in either case; `\\` takes their meaning away."""
    regex, short, long = "", "", ""
    for escaped, letter in re.findall(r"\\([*?\\])|(.)", pattern, re.S):
        if letter == "*":
            regex, long = regex + ".*", long + "abc"
        elif letter == "?":
            regex, short, long = regex + ".", short + "x", long + "x"
        else:
            plain = escaped or letter
            regex, short, long = regex + re.escape(plain), short + plain, long + plain
    whole = re.compile(regex, re.I | re.S)
    return Term(
        field,
        f"~ {pattern}",
        lambda found: whole.fullmatch(text_of(found)) is not None,
        [short, long],
    )


def matches_regex(field, pattern, is_whole, flags=0):
    compiled = re.compile(pattern, flags | re.S)
    test = compiled.fullmatch if is_whole else compiled.search
    return Term(
        field,
        f"/{pattern}/",
        lambda found: test(text_of(found)) is not None,
        [sample_of(pattern) for _ in range(4)],
    )


def in_network(field, networks):
    known = [ipaddress.ip_network(network, strict=False) for network in networks]

    def holds(found):
        try:
            address = ipaddress.ip_address(text_of(found))
        except ValueError:
            return False
        return any(address in network for network in known if network.version == address.version)

    samples = [
        str(network.network_address + (1 if network.num_addresses > 1 else 0)) for network in known
    ]
    return Term(field, f"in {networks}", holds, samples)


def compares(field, operator, number):
    tests = {
        ">": lambda a: a > number,
        ">=": lambda a: a >= number,
        "<": lambda a: a < number,
        "<=": lambda a: a <= number,
    }
    test = tests[operator]

    def holds(found):
        try:
            return test(float(text_of(found)))
        except ValueError:
            return False

    return Term(
        field,
        f"{operator} {number}",
        holds,
        [str(int(number) + (operator == ">") - (operator == "<"))],
    )


def text_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)


def sample_of(pattern):
    """A text that a regular expression matches."""
    return "".join(pieces(regex_parser.parse(pattern)))


def pieces(tree):
    out = []
    for code, value in tree:
        name = str(code)
        if name == "LITERAL":
            out.append(chr(value))
        elif name == "NOT_LITERAL":
            out.append("b" if chr(value) == "a" else "a")
        elif name == "ANY":
            out.append("a")
        elif name == "IN":
            out.append(of_set(value))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            count = least if least > 0 else random.choice([0, min(1, most)])
            for _ in range(count):
                out.extend(pieces(inner))
        elif name == "SUBPATTERN":
            out.extend(pieces(value[3]))
        elif name == "BRANCH":
            out.extend(pieces(random.choice(value[1])))
    return out


def of_set(parts):
    allowed = [chr(number) for number in range(32, 127)]
    is_negative = bool(parts) and str(parts[0][0]) == "NEGATE"
    listed = set()
    for code, value in parts:
        name = str(code)
        if name == "LITERAL":
            listed.add(chr(value))
        elif name == "RANGE":
            listed.update(chr(number) for number in range(value[0], value[1] + 1))
        elif name == "CATEGORY":
            test = {
                "DIGIT": str.isdigit,
                "WORD": lambda c: c.isalnum() or c == "_",
                "SPACE": str.isspace,
            }
            kind = str(value).removeprefix("CATEGORY_")
            wanted = test[kind.removeprefix("NOT_")]
            listed.update(c for c in allowed if wanted(c) != kind.startswith("NOT_"))
    choice = [c for c in allowed if (c in listed) != is_negative]
    return random.choice([c for c in choice if c.isalnum()] or choice or ["a"])


def values_at(document, field):
    """All values at a place with dots; of a list, those of its items."""
    found = [document]
    for name in field.split("."):
        inner = [value for item in found for value in items(item)]
        found = [value[name] for value in inner if isinstance(value, dict) and name in value]
    return [value for item in found for value in items(item) if value is not None]


def items(value):
    return value if isinstance(value, list) else [value]


def holds(tree, document):
    """Whether the rule finds an event. As in a store, `not` also finds those without the field."""
    if isinstance(tree, All):
        return all(holds(part, document) for part in tree.parts)
    if isinstance(tree, Any):
        return any(holds(part, document) for part in tree.parts)
    if isinstance(tree, Not):
        return not holds(tree.part, document)
    return any(tree.holds(value) for value in values_at(document, tree.field))


def choose(tree, rng, is_wanted=True):
    """One way to make the tree true: terms, each with whether it has to hold."""
    if isinstance(tree, Not):
        return choose(tree.part, rng, not is_wanted)
    if isinstance(tree, Term):
        return [(tree, is_wanted)]
    takes_all = isinstance(tree, All) == is_wanted
    if takes_all:
        return [term for part in tree.parts for term in choose(part, rng, is_wanted)]
    return choose(rng.choice(tree.parts), rng, is_wanted)


def unmet(tree, document, is_wanted=True):
    """The terms that keep an event from being found: those of the branch that lacks least."""
    if holds(tree, document) == is_wanted:
        return []
    if isinstance(tree, Not):
        return unmet(tree.part, document, not is_wanted)
    if isinstance(tree, Term):
        return [tree if is_wanted else Term(tree.field, f"not {tree.text}", tree.holds, [])]
    lacking = [unmet(part, document, is_wanted) for part in tree.parts]
    if isinstance(tree, All) == is_wanted:
        return [term for part in lacking for term in part]
    return min(lacking, key=len)
