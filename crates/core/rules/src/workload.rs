//! Tarsier's own fields: `unit=`, `slice=`, `container=`, `label=` and `ancestor_exe=`.

use abi::Field;

/// Value of `container=` for a task in some container.
pub const ANY: &[u8] = b"any";
/// Value of `container=` for a task in no container.
pub const NONE: &[u8] = b"none";
/// Longest name of a cgroup (`NAME_MAX`), and so of what these fields name, in bytes.
const NAME_LEN_MAX: usize = 255;

/// Longest path of an executable that `ancestor_exe=` takes, in bytes.
const PATH_LEN_MAX: usize = 4095;

/// Checks the value of one of Tarsier's own fields.
///
/// # Errors
/// No task can have the value. The text says what the field takes.
pub(crate) fn check_name(field: Field, text: &[u8]) -> Result<(), &'static str> {
    let is_short = text.len()
        <= if field == Field::AncestorExe {
            PATH_LEN_MAX
        } else {
            NAME_LEN_MAX
        };

    let (is_fine, expected) = match field {
        Field::Unit => (
            identity::is_unit(text),
            "the whole name of a service, scope, socket, mount or swap unit, such as ssh.service",
        ),
        Field::Slice => (
            identity::is_slice(text),
            "the whole name of a slice, such as system.slice",
        ),
        Field::Label => (
            is_label(text),
            "a label of label_keys: letters, digits, '.', '_' and '-', at most 64",
        ),
        Field::AncestorExe => (
            text.starts_with(b"/") && !text.ends_with(b"/"),
            "the absolute path of a program, such as /usr/sbin/sshd",
        ),
        _ => (
            !text.is_empty() && !text.iter().any(|byte| b"/\0".contains(byte)),
            "the whole id or name of a container, `any` or `none`",
        ),
    };

    if is_fine && is_short {
        Ok(())
    } else {
        Err(expected)
    }
}

/// Longest label, in bytes.
const LABEL_LEN_MAX: usize = 64;

/// Whether this can be a label of a process.
fn is_label(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=LABEL_LEN_MAX).contains(&text.len()) && text.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use crate::{
        check, list_rule, parse_line_as, Command, Dialect, ListStyle, Rule, Source, StaticHost,
    };
    use abi::Arch;

    fn parsed(dialect: Dialect, line: &str) -> Result<Rule, crate::RuleError> {
        let host = StaticHost::new(Arch::X86_64);
        let parsed = parse_line_as(dialect, line.as_bytes(), &Source::default(), &host);
        match (parsed.error, parsed.commands.into_iter().next()) {
            (None, Some(Command::Append(rule))) => Ok(rule),
            (Some(error), _) => Err(error),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let error = parsed(Dialect::Tarsier, line).expect_err(line);
        let parts = [
            Some(error.message.clone()),
            error.expected.clone(),
            error.help.clone(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn rules_by_workload_read_back_from_text_and_bytes_as_they_were() {
        for line in [
            "-a never,exit -S all -F unit=backup.service",
            "-a always,exit -S all -F unit!=ssh.service -F slice=system.slice -F key=a",
            "-a always,exit -F arch=b64 -S openat -F container=any -F key=c",
            "-a always,exit -S all -F container=debian-test",
            "-a always,io_uring -S openat -F container!=none",
            "-a always,exit -F arch=b64 -S openat -F label=web -F ancestor_exe!=/usr/sbin/sshd -F key=d",
            r"-a always,exit -S all -F unit=dev-disk-by\x2dlabel.mount",
        ] {
            let rule = parsed(Dialect::Tarsier, line).expect(line);
            let listed = list_rule(&rule, &ListStyle::default());
            assert_eq!(listed, line);
            let again = parsed(Dialect::Tarsier, &listed).expect(line);
            assert!(again.same(&rule), "{line}");
            let bytes = crate::to_kernel(&rule);
            assert!(crate::from_kernel(&bytes).expect(line).same(&rule));
            let style = ListStyle {
                is_reloadable: true,
                ..ListStyle::default()
            };
            let reloadable = list_rule(&rule, &style);
            assert!(parsed(Dialect::Tarsier, &reloadable)
                .expect(line)
                .same(&rule));
        }
    }

    #[test]
    fn a_key_needs_no_calls_beside_a_unit() {
        let rule = parsed(Dialect::Tarsier, "-a always,exit -F unit=a.service -k u");
        assert!(rule.expect("a rule").syscalls.is_all());
    }

    #[test]
    fn the_fields_of_auditctl_are_those_of_auditctl() {
        for dialect in [Dialect::V3, Dialect::V4] {
            let error = parsed(dialect, "-a never,exit -F unit=a.service").expect_err("auditctl");
            assert_eq!(error.message, "-F unknown field: unit");
            let help = error.help.expect("help");
            assert!(help.contains("*.tarsier"), "{help}");
        }
    }

    #[test]
    fn values_that_no_task_can_have_are_refused_with_what_would_be_right() {
        let long = format!("unit={}.service", "n".repeat(248));
        for value in ["unit=backup", "unit=a b.service", "unit=.service", &long] {
            let line = format!("-a never,exit -F {}", value.replace(' ', "\\ "));
            assert!(refused(&line).contains("such as ssh.service"), "{value}");
        }
        assert!(refused("-a never,exit -F slice=system").contains("such as system.slice"));
        assert!(refused("-a never,exit -F container=a/b").contains("`any` or `none`"));
        assert!(refused("-a never,exit -F label=a/b").contains("label_keys"));
        let long = format!("-a never,exit -F label={}", "n".repeat(65));
        assert!(refused(&long).contains("label_keys"));
        for path in ["sshd", "/usr/sbin/"] {
            let line = format!("-a never,exit -F ancestor_exe={path}");
            assert!(refused(&line).contains("such as /usr/sbin/sshd"), "{path}");
        }
        assert!(refused("-a never,exit -F unit>a.service").contains("only takes = or !="));
        let on_list = refused("-a never,task -F unit=a.service");
        assert!(on_list.contains("exit and io_uring"), "{on_list}");
        assert!(refused("-a always,exclude -F container=any").contains("exit and io_uring"));
        let fits = format!(
            "-a never,exit -F unit={}.service",
            "n".repeat(255 - ".service".len())
        );
        assert!(parsed(Dialect::Tarsier, &fits).is_ok());
    }

    #[test]
    fn rules_that_did_not_come_from_text_are_checked_too() {
        let mut rule = parsed(Dialect::Tarsier, "-a never,exit -F unit=a.service").expect("a rule");
        assert!(check(&rule, None).is_ok());
        rule.list = crate::List::User;
        assert!(check(&rule, None).is_err());
        rule.list = crate::List::Exit;
        rule.conditions[0].op = crate::Op::Gt;
        assert!(check(&rule, None).is_err());
        rule.conditions[0].op = crate::Op::Eq;
        rule.conditions[0].value = crate::Value::Text(b"a.slice".to_vec());
        assert!(check(&rule, None).is_err());
    }
}
