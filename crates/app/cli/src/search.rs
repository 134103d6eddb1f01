//! `tarsier search`, whose options are ausearch's and are not parsed by clap.

/// Output of `tarsier search -h`.
pub const SEARCH_USAGE: &str = "\
usage: tarsier search [--compat] OPTIONS
       ausearch OPTIONS

Finds events in audit logs. An event must match all conditions.

which logs
  -if, --input PATH         file, or directory with audit.log and its rotated files
  --input-logs              the logs of auditd.conf, even if standard input is a pipe

what to look for
  -a, --event N             serial number
  -c, --comm TEXT           name of the task
  -e, --exit N|ERRNO        result of the call
  -f, --file TEXT           file, working directory or UNIX socket
  -ga, -ge, -gi GROUP       any, effective, real group
  -hn, --host TEXT          remote host
  -k, --key TEXT            key of a rule
  -m, --message TYPE[,…]    record type
  -n, --node NAME           node; may be repeated
  -o, --object TEXT         label of the object
  -p, --pid N               process
  -pp, --ppid N             its parent
  -sc, --syscall NAME|N     system call; by name on every machine, or that of --arch
  -se, --context TEXT       label of subject or object
  --session N               login session
  -su, --subject TEXT       label of the subject
  -sv, --success yes|no     result
  -tm, --terminal TEXT      terminal
  -ua, -ue, -ui, -ul USER   any, effective, real user, login id
  -uu, --uuid TEXT          UUID of a virtual machine
  -vm, --vm-name TEXT       virtual machine
  -w, --word                texts must be equal, not only contain TEXT
  -x, --executable TEXT     program
  --arch NAME               architecture of the call; before -sc
  -ts, --start [DATE] [TIME]   from this time
  -te, --end [DATE] [TIME]     until this time
                            dates as the locale writes them, or: now recent boot today
                            yesterday this-week week-ago this-month this-year;
                            -ts checkpoint: from the time in --checkpoint FILE;
                            not with --compat: 2h, 30m, 7d before now; seconds since 1970;
                            2026-11-14T22:13:20Z, without or with time and zone

more conditions (not with --compat)
  --since, --until TIME     -ts, -te
  --touched PATH            events of a file, by any of its names
  --tree PID[@TIME]         what a process and its descendants did, as a tree
  --timeline WHAT           ses:N, pid:N or unit:NAME; a line for each event
  --unit NAME               systemd unit
  --container ID            container, or the beginning of its id
  --where EXPR              expression as in ausearch-expression(5)
  --follow                  continue with events that are added, across rotations

how to print
  --format FORMAT           raw: lines of the log; default: with times, last record first;
                            interpret: values with their meaning; csv: a line of columns
                            for each event; text: a sentence for each event; not with
                            --compat: json: an array, jsonl: a line for each event,
                            ecs, ecs-auditbeat, ocsf: a line of Elastic Common Schema, of
                            it in words of Auditbeat, or of OCSF
  --as-host NAME            ecs, ocsf: the host of events whose log does not name one
  -i, --interpret           --format interpret
  --extra-keys, --extra-labels, --extra-obj2, --extra-time
                            more columns of csv
  --escape raw|tty|shell|shell_quote   what is escaped; tty: control characters
  -r, --raw                 --format raw
  --just-one                only the first event
  -l, --line-buffered       each event at once

others
  --no-index                neither read nor make indexes beside rotated files
  --build-index             make them, and exit
  --eoe-timeout SECONDS     age at which an event is complete
  --checkpoint FILE         only events newer than those of the search that wrote FILE
  --debug                   say which types --format text has no words for
  --compat                  first: as ausearch 4.x, byte for byte; so does the name ausearch
  -h, -v                    this text, the version
";
