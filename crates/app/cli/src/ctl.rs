//! `tarsier ctl`, whose options are auditctl's and are not parsed by clap.

/// Output of `tarsier ctl -h`.
pub const USAGE: &str = "\
usage: auditctl [--kernel] [--run-dir DIR] [--dialect 3|4] OPTIONS
       tarsier ctl [--kernel] [--run-dir DIR] [--dialect 3|4] OPTIONS

Acts on the running Tarsier, or with --kernel on the kernel's own audit.

rules
  -a LIST,ACTION      add a rule at the end of a list
                      lists: task exit user exclude filesystem io_uring
                      actions: always never
  -A LIST,ACTION      add a rule at the beginning
  -d LIST,ACTION      delete the rule that is exactly the same
  -D [-k TEXT]        delete all rules, or those whose key contains TEXT
  -S NAME             system call: name, number, all, or several with commas
  -F FIELD OP VALUE   condition; OP is = != < <= > >= & &=
  -C FIELD OP FIELD   comparison of two fields; OP is = or !=
  -k KEY              key to find the rule's events by
  -w PATH, -W PATH    add or remove a watch
  -p rwxa             accesses to watch: read, write, execute, attributes
  -l [-i] [-k TEXT]   list the rules
  -R FILE             take options from FILE, line by line
  -i, -c              in a rules file: go on after errors; -c still fails at the end
  -q MOUNT,SUBTREE    watch SUBTREE wherever MOUNT is watched
  -t                  forget watched trees that were unmounted

settings
  -s [-i]             status
  -e 0|1|2            off, on, on and locked
  -f 0|1|2            on failure: nothing, a kernel message, panic
  -b N                backlog limit, in records
  -r N                records per second, 0 for no limit
  --backlog_wait_time TICKS
  --reset-lost
  --reset_backlog_wait_time_actual
  --loginuid-immutable

others
  -m TEXT             log TEXT
  --signal NAME       send TERM, HUP, USR1, USR2 or CONT to the daemon
  -v                  version
  -h                  this help
";
