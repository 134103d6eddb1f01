//! Descriptions of the keys, from which `cargo xtask` makes tarsier.conf(5) and the reference manual.

use crate::keys::KEYS;

/// Description of a key of the configuration file.
#[derive(Clone, Copy, Debug)]
pub struct KeyDescription {
    /// The key as it is written in the file.
    pub name: &'static str,
    /// Whether the key is Tarsier's own, unknown to auditd.
    pub is_own: bool,
    /// The values that the key accepts.
    pub values: &'static str,
    /// The value if the file does not set the key; empty if there is none.
    pub unset: &'static str,
    /// The value if there is no file, which is that of the file that auditd ships; empty if it is the
    /// same as `unset`.
    pub shipped: &'static str,
    /// Effect of the key; empty if it has none.
    pub meaning: &'static str,
    /// Behaviour instead, for a key that has no effect.
    pub no_effect: Option<&'static str>,
}

/// Every key that a file may have: first those of auditd.conf(5), in its order, then Tarsier's own.
pub fn described_keys() -> Vec<KeyDescription> {
    let described = KEYS.iter().filter_map(|key| {
        let text = TEXTS.iter().find(|text| text.0 == key.name);
        let (_, values, unset, shipped, meaning) = *text?;
        Some(KeyDescription {
            name: key.name,
            is_own: OWN.contains(&key.name),
            values,
            unset: match key.not_honoured {
                Some(_) => key.auditd_default,
                None => unset,
            },
            shipped,
            meaning,
            no_effect: key.not_honoured,
        })
    });

    let mut keys: Vec<KeyDescription> = described.collect();
    keys.sort_by_key(|key| key.is_own);
    keys
}

const OWN: [&str; 16] = [
    "identity",
    "label_keys",
    "exe_hash",
    "exe_hash_max",
    "seal",
    "confinement",
    "rules_error",
    "compress_rotated",
    "index_rotated",
    "io_uring_twins",
    "objects_before",
    "overload",
    "urgent_keys",
    "rate_budgets",
    "pin_dir",
    "metrics",
];

const SPACE_ACTIONS: &str = "IGNORE, SYSLOG, ROTATE, EMAIL, EXEC /PROGRAM, SUSPEND, SINGLE or HALT";

/// Key, values, value if unset, value that auditd ships, meaning.
type Text = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const TEXTS: &[Text] = &[
    ("local_events", "yes or no", "", "", ""),
    ("write_logs", "yes or no", "yes", "",
     "With `no`, no log file is opened, created, rotated or sealed, and keys about the log file or its disk have no \
      effect; plugins get every event at once. If it is set to `no` while the daemon is recording, the log ends with a \
      durable record `op=reconfigure write_logs=no`, and its seal is valid."),
    ("log_file", "absolute path", "/var/log/audit/audit.log", "", "The log file."),
    ("log_format", "RAW, ENRICHED, JSON or COMPACT", "ENRICHED", "",
     "Format of the log. JSON (one object per event) and COMPACT are Tarsier's own. COMPACT is ENRICHED, compressed \
      while it is written; it takes a tenth of the size of RAW or less, and `tarsier cat` prints it as text. NOLOG is \
      an old name for `write_logs = no`."),
    ("log_group", "name or number of a group", "root", "", "Group that may read the log."),
    ("flush", "NONE, INCREMENTAL, INCREMENTAL_ASYNC, DATA or SYNC", "NONE", "INCREMENTAL_ASYNC",
     "When records become durable. NONE: when the kernel writes them back. INCREMENTAL and INCREMENTAL_ASYNC: after \
      every `freq` records; INCREMENTAL waits for the disk, INCREMENTAL_ASYNC does not. DATA and SYNC: 5 ms and two \
      syncs of the disk after the call."),
    ("freq", "number", "0", "50", "Records between two syncs of the incremental modes."),
    ("num_logs", "0 to 999", "0", "5",
     "Number of files that ROTATE keeps, the current one included. Below 2, nothing is rotated."),
    ("name_format", "NONE, HOSTNAME, FQD, NUMERIC or USER", "NONE", "",
     "Node name before each record: none, that of gethostname(2), the fully qualified one, the host's address, or \
      the value of `name`. FQD and NUMERIC ask the resolver; if it does not know the host, the daemon does not start."),
    ("name", "word", "", "", "Node name for `name_format = USER`."),
    ("max_log_file", "MiB", "0", "8", "Size of the log at which `max_log_file_action` is taken; 0 means never."),
    ("max_log_file_action", "IGNORE, SYSLOG, SUSPEND, ROTATE, KEEP_LOGS or EXEC /PROGRAM", "IGNORE", "ROTATE",
     "What is done when the log reaches `max_log_file`."),
    ("space_left", "MiB, or a percentage", "0", "75",
     "Free space on the log's file system below which `space_left_action` is taken."),
    ("space_left_action", SPACE_ACTIONS, "IGNORE", "SYSLOG",
     "What is done when less than `space_left` is free. Messages go to syslog and standard error; EMAIL runs \
      `/usr/lib/sendmail -t`; SINGLE and HALT suspend the log and run `/sbin/init 1` and `/sbin/init 0`."),
    ("verify_email", "yes or no", "yes", "",
     "Whether the syntax of `action_mail_acct` is checked. Its domain is not looked up."),
    ("action_mail_acct", "account or mail address", "root", "", "Recipient of the mail that EMAIL sends."),
    ("admin_space_left", "MiB, or a percentage", "0", "50",
     "Free space below which `admin_space_left_action` is taken. Must be less than `space_left`."),
    ("admin_space_left_action", SPACE_ACTIONS, "IGNORE", "SUSPEND",
     "What is done when less than `admin_space_left` is free; see `space_left_action`."),
    ("disk_full_action", "IGNORE, SYSLOG, ROTATE, EXEC /PROGRAM, SUSPEND, SINGLE or HALT", "IGNORE", "SUSPEND",
     "What is done when the disk is full."),
    ("disk_error_action", "IGNORE, SYSLOG, EXEC /PROGRAM, SUSPEND, SINGLE or HALT", "SYSLOG", "SUSPEND",
     "What is done when writing fails for another reason."),
    ("priority_boost", "number", "4", "",
     "Subtracted from the nice value with which the daemon was started."),
    ("tcp_listen_port", "1 to 65535", "", "", ""),
    ("tcp_listen_queue", "1 to 65535", "", "", ""),
    ("tcp_max_per_addr", "1 to 1024", "", "", ""),
    ("use_libwrap", "yes or no", "", "", ""),
    ("tcp_client_ports", "a port, or two with a dash between them", "", "", ""),
    ("tcp_client_max_idle", "seconds", "", "", ""),
    ("transport", "TCP, TLS or KRB5", "", "", ""),
    ("enable_krb5", "yes or no", "", "", ""),
    ("krb5_principal", "name", "", "", ""),
    ("krb5_key_file", "path", "", "", ""),
    ("tls_auth", "PSK", "", "", ""),
    ("tls_crypto_profile", "compatible, system or pqc", "", "", ""),
    ("tls_psk_file", "absolute path", "", "", ""),
    ("tls_psk_identity", "text", "", "", ""),
    ("tls_allowed_clients", "absolute path", "", "", ""),
    ("tls_cipher_suites", "text", "", "", ""),
    ("tls_key_exchange", "text", "", "", ""),
    ("tls_require_pqc", "yes or no", "", "", ""),
    ("distribute_network", "yes or no", "", "", ""),
    ("q_depth", "0 to 99999", "2000", "", "Number of records that may wait for each plugin."),
    ("overflow_action", "IGNORE, SYSLOG, SUSPEND, SINGLE or HALT", "SYSLOG", "",
     "What is done when a plugin's queue is full. SUSPEND stops that plugin; auditd stops all of them."),
    ("max_restarts", "number", "10", "", "How often a plugin that has ended is restarted."),
    ("plugin_dir", "path", "/etc/audit/plugins.d", "", "Directory of the configuration files of plugins."),
    ("end_of_event_timeout", "seconds", "2", "",
     "Age at which ausearch and aureport consider an event complete. The daemon does not use it."),
    ("report_interval", "seconds, or a number with s, m, h, d or M", "", "", ""),
    ("dispatcher", "anything", "", "", "Deprecated and ignored, as in auditd."),
    ("disp_qos", "anything", "", "", "Deprecated and ignored, as in auditd."),
    ("identity", "yes or no", "", "",
     "Whether events name unit, container and pod, and the ancestors of their process. JSON has them in `workload` and \
      `process`, ENRICHED and COMPACT \
      after the names of the SYSCALL record. RAW never has them. Unset, \
      JSON has them and the others do not."),
    ("label_keys", "KEY:LABEL[,KEY:LABEL…]", "", "",
     "An event of a rule with this key gives its process the label. From then on, all events of the process, and of \
      those that it makes and that these make, have it: in JSON in `labels`, in ENRICHED and COMPACT in LABELS= after \
      the names of the SYSCALL record. RAW never has labels. A label has up to 64 letters, digits, '.', '_' and '-', \
      and there are up to 64 of them."),
    ("exe_hash", "NONE or SHA256", "NONE", "",
     "Whether events of execve and execveat have the SHA-256 digests of the program and, for a script, of the script. \
      JSON has them in `hashes`, ENRICHED and COMPACT after the names of the SYSCALL record, with a reason for each \
      that is missing. RAW never has them. A helper with rights of its own reads the files."),
    ("exe_hash_max", "1 to 4096", "100", "",
     "Size in MiB up to which executed files are hashed."),
    ("seal", "yes or no", "no", "",
     "Whether a seal is kept beside the log, with which `tarsier verify` detects any change."),
    ("compress_rotated", "yes or no", "no", "",
     "Whether rotated files are compressed to `audit.log.N.zst`. `tarsier cat` and `tarsier verify` read them, \
      ausearch does not."),
    ("index_rotated", "yes or no", "no", "",
     "Whether a rotated file of 1 MiB or more gets an index, `audit.log.N.idx`, with which `tarsier search` reads less of \
      it. A thread makes it when no processor has anything else to do (SCHED_IDLE). Otherwise a search by root makes it."),
    ("objects_before", "yes or no", "no", "",
     "Whether, where functions of the kernel cannot be hooked (engine tracepoint), the records of unlink, rename, chmod, \
      chown, mount and their like have objects as they were before the call: what is removed with its inode, the mode \
      that is changed. While rules are about such a call, every call of the host then passes one more hook: see \
      `tarsier plan`."),
    ("io_uring_twins", "yes or no", "yes", "",
     "Whether rules on system calls also select the io_uring operations that do the same. Then `-S openat` and `-w` \
      also match a file that is opened through io_uring."),
    ("overload", "THROTTLE or DROP", "THROTTLE", "",
     "What happens when the ring buffer of a processor is more than half full. Each user may use a quarter of the space \
      that is left, together with all uids of user namespaces that the user made. THROTTLE: a recorded call of a user \
      who has used up the share waits at its end, longer as the ring fills: at most 1 ms, or 20 ms once the ring is \
      nearly full. DROP: the user's events are dropped and counted, as under THROTTLE if the daemon has read nothing for 1 s."),
    ("urgent_keys", "KEY[,KEY…]", "", "",
     "Events of rules with one of these keys wake the daemon and are synced at once, regardless of `flush`. A sixteenth \
      of each ring is kept free for them."),
    ("rate_budgets", "KEY:N[,KEY:N…]", "", "",
     "Each rule with one of these keys records at most N events per second; the smallest N if it has several of them. \
      The others are counted: DAEMON_ERR records with `op=events-suppressed` give their number by rule. They are not \
      lost events, and -f does not concern them."),
    ("pin_dir", "/sys/fs/bpf/DIRECTORY, or OFF", "OFF", "",
     "Directory for pinned BPF objects, with which capture goes on when the daemon is killed."),
    ("metrics", "unix:/PATH, 127.0.0.1:PORT, or OFF", "OFF", "",
     "Address at which `GET /metrics` returns the daemon's counters in Prometheus' text format. Only root can use the \
      socket; every user of the host can use the port, and read there which units, containers, users and programs \
      write most of the log."),
    ("confinement", "yes, no or strict", "yes", "",
     "Whether the daemon gives up what it does not need before it arms anything: capabilities, system calls, writing \
      outside its directories. With `yes`, a system call that it does not need fails and is recorded; with `strict`, \
      it kills the daemon. A change takes effect at the next start."),
    ("rules_error", "refuse, last-good or skip", "last-good", "",
     "What a start does if rules cannot be put in force: a line is wrong, a file cannot be read or was cut short, a limit \
      is exceeded. `refuse`: the daemon does not start. `last-good`: it takes the rules that were last in force without \
      an error; if there are none, it does what `skip` does: it takes the lines that are right. What is not in force is \
      in the log (DAEMON_START and DAEMON_ERR), in syslog and in `tarsier status`. A reload never takes a part of the \
      rules: what is in force stays. `tarsier run` with a command always refuses. The same is done if a line of \
      auditd.conf is wrong, or the file cannot be read."),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{parse, Config};

    #[test]
    fn every_key_is_described_once() {
        let described: Vec<&str> = TEXTS.iter().map(|text| text.0).collect();
        for key in KEYS {
            let count = described.iter().filter(|name| **name == key.name).count();
            assert_eq!(count, 1, "{}", key.name);
        }
        assert_eq!(described.len(), KEYS.len());
        assert!(OWN.iter().all(|name| described.contains(name)));
        for key in described_keys() {
            assert_ne!(
                key.meaning.is_empty(),
                key.no_effect.is_none(),
                "{}",
                key.name
            );
        }
    }

    /// The configuration of a file in which each key has the value that `value` returns for it.
    fn file(value: fn(&KeyDescription) -> &'static str) -> Config {
        let keys = described_keys();
        let set = keys.iter().filter(|key| !value(key).is_empty());
        let text: String = set
            .map(|key| format!("{} = {}\n", key.name, value(key)))
            .collect();
        let loaded = parse(text.as_bytes(), Path::new("auditd.conf"));
        loaded.unwrap_or_else(|error| panic!("{error}")).config
    }

    #[test]
    fn values_said_to_hold_unset_are_those() {
        let text = |key: &KeyDescription| match key.no_effect {
            None => key.unset,
            Some(_) => "",
        };
        assert_eq!(file(text), Config::unset());
    }

    #[test]
    fn values_said_to_be_shipped_are_those_without_a_file() {
        let shipped = |key: &KeyDescription| match key.no_effect {
            None => key.shipped,
            Some(_) => "",
        };
        assert_eq!(file(shipped), Config::default());
    }
}
