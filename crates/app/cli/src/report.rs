//! `tarsier report`, whose options are aureport's and are not parsed by clap.

/// Output of `tarsier report --help`.
pub const REPORT_USAGE: &str = "\
usage: tarsier report [--compat] OPTIONS
       aureport OPTIONS

Reports on audit logs: a line per event, or with --summary counts. Without the name of a report
it counts everything.

reports
  -a, --avc                 decisions of security modules
  -au, --auth               authentications
  -c, --config              changes of configuration
  --comm                    names of tasks
  -cr, --crypto             keys and sessions of encryption
  -e, --event               all events
  -f, --file                files
  -h, --host                remote hosts
  --integrity               integrity of files
  -k, --key                 keys of rules
  -l, --login               logins
  -m, --mods                changes to accounts
  -ma, --mac                changes of mandatory access control
  -n, --anomaly             anomalies
  -p, --pid                 processes
  -r, --response            responses to anomalies
  -s, --syscall             system calls
  -t, --log                 first and last time of each log
  -tm, --terminal           terminals
  --tty                     keystrokes
  -u, --user                users, by login id
  --virt                    virtual machines
  -x, --executable          programs
  --summary                 counts of what the report is about, most first

reports that aureport does not have
  --top FIELD [--by FIELD]  events by a field: hits, failures, first and last time
                            fields: exe comm key uid auid pid ses syscall file host node
                            terminal type unit container
    --rows N                at most N rows; 20 if it is not given
  --changes                 programs, users, destinations and units that are new
    --since [DATE] [TIME]   new since then; by default a week before the end
  --overview                what comes first: logins by address and result, sudo and su, accounts,
                            audit rules and daemon changed, denials of SELinux and AppArmor,
                            programs new in the last day, gaps and losses of each host
  --format text|csv|json|jsonl   format of these

which events
  --failed, --success       only those that failed, or succeeded
  --add, --delete           only changes that add, or that delete
  -nc, --no-config          without CONFIG_CHANGE
  --node NAME               of this node; may be repeated
  -ts, --start [DATE] [TIME]   from this time
  -te, --end [DATE] [TIME]     until this time
                            dates as the locale writes them, or: now recent boot today
                            yesterday this-week week-ago this-month this-year;
                            not with --compat: 2h, 30m, 7d before now; seconds since 1970;
                            2026-11-14T22:13:20Z, without or with time and zone
  --since, --until          -ts, -te; not with --compat

which logs
  -if, --input PATH         file, or directory with audit.log and its rotated files
  --input-logs              the logs of auditd.conf, even if standard input is a pipe

others
  -i, --interpret           names instead of numbers
  --escape raw|tty|shell|shell_quote
                            how control characters are printed
  --eoe-timeout SECONDS     age at which an event is complete
  --debug                   as in aureport, without effect on the report
  --compat                  first: as aureport 4.x, byte for byte; so does the name aureport
  -v, --help                the version, this text
";
