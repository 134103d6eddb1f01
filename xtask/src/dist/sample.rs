//! The sample configuration: every key with what it does, each commented out.

use conf::{described_keys, KeyDescription};
use std::fmt::Write;

const HEAD: &str = "\
# Sample of /etc/audit/auditd.conf for Tarsier. Without that file the values below hold; a file that
# does not set a key has the value that its comment gives as unset. tarsier.conf(5) has the same.
# The file has to be root's alone.
";

/// The whole file.
pub(super) fn text() -> String {
    let mut text = HEAD.to_owned();
    for key in described_keys() {
        // A String takes whatever is written.
        let _ = add(&mut text, &key);
    }
    text
}

fn add(text: &mut String, key: &KeyDescription) -> std::fmt::Result {
    writeln!(text, "\n# {}: {}.", key.name, key.values)?;
    let meaning = match key.no_effect {
        Some(instead) => format!("No effect: {instead}."),
        None => key.meaning.to_owned(),
    };
    let unset = match key.unset {
        "" => String::new(),
        unset => format!(" Unset: {unset}."),
    };
    let wrapped = crate::docs::text::wrap(&format!("{meaning}{unset}"), "  ");
    for line in wrapped.lines() {
        writeln!(text, "# {}", line.trim_start())?;
    }
    let value = match key.shipped {
        "" => key.unset,
        shipped => shipped,
    };

    writeln!(text, "#{} = {value}", key.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_sample_changes_nothing_and_names_every_key() {
        let text = text();
        let loaded = conf::parse(text.as_bytes(), Path::new("auditd.conf")).unwrap();
        assert_eq!(loaded.config, conf::Config::unset());
        for key in described_keys() {
            let line = format!("\n#{} = ", key.name);
            assert_eq!(text.matches(&line).count(), 1, "{}", key.name);
        }
        let comments = text.lines().filter(|line| !line.is_empty());
        assert!(comments.clone().all(|line| line.starts_with('#')));
        assert!(comments.clone().all(|line| line.chars().count() <= 120));
    }

    #[test]
    fn its_values_are_those_without_a_file() {
        let honoured: Vec<&str> = described_keys()
            .iter()
            .filter(|key| key.no_effect.is_none())
            .map(|key| key.name)
            .collect();
        let text = text();
        let set = text.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix('#')?.split_once(" = ")?;
            (honoured.contains(&name) && !value.is_empty()).then(|| format!("{name} = {value}\n"))
        });
        let set: String = set.collect();
        let loaded = conf::parse(set.as_bytes(), Path::new("auditd.conf")).unwrap();
        assert_eq!(loaded.config, conf::Config::default());
    }
}
