//! `tarsier seccomp learn`: a profile of the calls that programs make.

use super::log_reader::{self, Wanted};
use super::places::{self, Place};
use super::source;
use anyhow::{bail, Context as _, Result};
use cli::messages::report;
use cli::seccomp::LearnArgs;
use query::time::Bound;
use query::Dialect;
use rustix::event::{PollFd, PollFlags, Timespec};
use seccomp::policy::Abi;
use seccomp::profile::learned::{Extra, Observed, VALUES_MAX};
use seccomp::profile::Context;
use seccomp_kernel::calls::{CallCounter, CallCounts};
use seccomp_kernel::launch::{Launch, Program};
use seccomp_kernel::signals::Signals;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Learns a profile. Returns 0, or the program's exit status.
pub(super) fn learn(args: &LearnArgs) -> Result<u8> {
    let context = source::context(&args.with)?;
    let mut writer = Writer::new(args, context)?;
    let (seen, status) = match &args.log {
        Some(log) => {
            let wanted = Wanted {
                exe: args.exe.as_deref(),
                since_s: since_s(&args.since)?,
            };
            (log_reader::learnt(log, &wanted, args.denied)?, 0)
        }
        None => record(args, &mut writer)?,
    };

    if args.counts {
        print_counts(&seen)?;
        return Ok(status);
    }

    let profile = writer.profile(&seen)?;
    match &args.output {
        Some(path) => writer.replace(path, &profile)?,
        None => std::io::stdout().lock().write_all(profile.as_bytes())?,
    }

    writer.remove_partial();
    summary(&seen, &writer);
    if let Some(path) = &args.report {
        let since = since_s(&args.since)?.map(log_reader::date);
        report(&seen, path, since, &writer.context)?;
    }

    Ok(status)
}

/// The time that the words of `--since` say.
fn since_s(words: &[String]) -> Result<Option<u64>> {
    let Some(first) = words.first() else {
        return Ok(None);
    };
    let second = words.get(1).map(String::as_str);
    let at_s = query::time::of_words(Bound::Start, first, second, Dialect::Own);
    let at_s = at_s.map_err(|error| anyhow::anyhow!("--since: {error}"))?;
    Ok(Some(u64::try_from(at_s).unwrap_or_default()))
}

/// Makes profiles of what was seen so far, and writes them.
struct Writer {
    context: Context,
    /// The profile to merge with, and its name.
    old: Option<(String, String)>,
    extras: Vec<Extra>,
    /// Whether values of arguments are kept.
    with_values: bool,
    partial: Option<PathBuf>,
}

impl Writer {
    fn new(args: &LearnArgs, context: Context) -> Result<Writer> {
        let old = match &args.merge {
            Some(path) => Some((source::text(path)?, path.display().to_string())),
            None => None,
        };

        // Nothing is kept of what is learnt from a log: it can be learnt from there again.
        let output = match &args.log {
            Some(_) => None,
            None => args.output.as_ref(),
        };
        let partial = output.map(|path| {
            let mut name = path.clone().into_os_string();
            name.push(".partial");
            PathBuf::from(name)
        });
        let writer = Writer {
            context,
            old,
            extras: vec![Extra::Vdso, Extra::Timing],
            with_values: args.args,
            partial,
        };

        // An old profile that cannot be merged is told before anything runs.
        writer.profile(&Observed::default())?;

        Ok(writer)
    }

    fn profile(&self, seen: &Observed) -> Result<String> {
        let mut seen = seen.clone();
        if !self.with_values {
            seen.values.clear();
        }
        let Some((text, name)) = &self.old else {
            let profile = seen.profile(self.context.native, &self.extras);
            return Ok(format!("{profile:#}\n"));
        };

        if let Ok(old) = Observed::from_profile(text, &self.context) {
            seen.merge(old);
            let profile = seen.profile(self.context.native, &self.extras);
            return Ok(format!("{profile:#}\n"));
        }

        let profile = seen.added_to(text, &self.context, &self.extras);

        Ok(format!("{:#}\n", profile.with_context(|| name.clone())?))
    }

    /// Writes a file as a whole: whoever reads it finds the old or the new contents.
    fn replace(&self, path: &Path, contents: &str) -> Result<()> {
        let mut name = path.to_path_buf().into_os_string();
        name.push(format!(".{}.new", std::process::id()));
        let new = PathBuf::from(name);
        let is_file = path.metadata().map_or(true, |known| known.is_file());
        let written = if is_file {
            std::fs::write(&new, contents).and_then(|()| std::fs::rename(&new, path))
        } else {
            // A pipe or a terminal.
            std::fs::write(path, contents)
        };
        written.map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
    }

    /// Keeps what was learnt so far, in case this process is killed.
    fn save_partial(&self, seen: &Observed) -> Result<()> {
        match &self.partial {
            Some(path) if !seen.calls.is_empty() => self.replace(path, &self.profile(seen)?),
            _ => Ok(()),
        }
    }

    fn remove_partial(&self) {
        if let Some(path) = &self.partial {
            // It is not there if nothing was learnt.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How often the state of things is looked at.
const PAUSE_MS: i64 = 100;

/// How often what was learnt is saved.
const SAVE: Duration = Duration::from_secs(2);

/// Time that a program has to end after a signal.
const GRACE: Duration = Duration::from_secs(3);

/// Runs the program, or follows what runs, and records it.
fn record(args: &LearnArgs, writer: &mut Writer) -> Result<(Observed, u8)> {
    let place = places::place(args)?;
    let until = args.duration.as_deref().map(duration).transpose()?;
    let until = until.map(|time| Instant::now() + time);
    if place.scope.inner_only {
        writer.extras.push(Extra::Runtime);
    }
    let telling = if args.args {
        log_reader::telling_calls()
    } else {
        Vec::new()
    };
    let counter = CallCounter::start(&telling, place.scope.clone()).context(
        "learning from running programs needs BPF, as root has it; --log learns from a log",
    )?;

    let status = if args.command.is_empty() {
        report!("tarsier: learning from {}; Ctrl-C ends it", place.name);
        watch(&counter, &place, writer, until)?;
        0
    } else {
        let program = Program::find(&args.command)?;
        let mut launch = Launch::start(&program, None)?;
        counter.follow(launch.pidfd())?;
        let signals = Signals::take()?;
        launch.go();
        let status = accompany(&counter, &mut launch, &signals, writer, until)?;
        if status.is_none() {
            launch.detach();
        }
        status.unwrap_or_default()
    };

    let counts = counter.counts()?;
    let [calls, values, tasks] = counts.missed;
    if calls + values + tasks > 0 {
        report!(
            "tarsier: the profile is incomplete: {calls} calls, {values} values and {tasks} tasks \
             did not fit; learn in shorter runs and merge them"
        );
    }

    let seen = observed(&counts);
    if seen.calls.is_empty() {
        bail!(
            "{}: no call was seen; is it running, and is it the right one?",
            place.name
        );
    }

    Ok((seen, status))
}

/// Waits until the program and all that it started have ended, or learning is to end before. The
/// program's status, if it has ended.
fn accompany(
    counter: &CallCounter,
    launch: &mut Launch,
    signals: &Signals,
    writer: &Writer,
    until: Option<Instant>,
) -> Result<Option<u8>> {
    let mut status = None;
    let mut end = until;
    let mut asked_to_end = false;
    let mut saved = Instant::now();

    loop {
        let pidfd = status.is_none().then(|| launch.pidfd());
        let has_ended = {
            let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
            fds.extend(pidfd.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            pause(&mut fds)?;
            fds.get(1).is_some_and(|fd| !fd.revents().is_empty())
        };
        while let Some(signal) = signals.next() {
            // Those of the terminal have reached the program already.
            if !signal.is_from_kernel && status.is_none() {
                launch.signal(signal.number);
            }
            let ends = !matches!(signal.number, libc::SIGUSR1 | libc::SIGUSR2);
            if ends {
                let now = Instant::now();
                end = Some(if asked_to_end { now } else { now + GRACE });
                asked_to_end = true;
            }
        }

        if has_ended {
            status = Some(launch.wait()?);
            let left = counter.threads(1)?;
            if left > 0 && !asked_to_end {
                report!(
                    "tarsier: the program has ended; {}, and learning goes on until they end \
                     (Ctrl-C ends it)",
                    run_on(left, "that it started")
                );
            }
        }
        let left = counter.threads(1)?;
        if status.is_some() && left <= 0 {
            return Ok(status);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            report!(
                "tarsier: learning ended; {}",
                run_on(left, "of the program")
            );
            return Ok(status);
        }
        save(counter, writer, &mut saved)?;
    }
}

/// `1 thread of the program runs on`.
fn run_on(threads: i64, whose: &str) -> String {
    match threads {
        1 => format!("1 thread {whose} runs on"),
        threads => format!("{threads} threads {whose} run on"),
    }
}

/// Waits until the processes have ended, a signal comes, or the time is over.
fn watch(
    counter: &CallCounter,
    place: &Place,
    writer: &Writer,
    until: Option<Instant>,
) -> Result<()> {
    let signals = Signals::take()?;
    let mut saved = Instant::now();
    let mut has_stopped = false;
    let is_gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();

    loop {
        let mut fds = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        pause(&mut fds)?;
        let stops = |number| !matches!(number, libc::SIGUSR1 | libc::SIGUSR2);
        while let Some(signal) = signals.next() {
            if stops(signal.number) {
                return Ok(());
            }
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(());
        }

        // A unit or a cgroup may not have started yet.
        let processes = &place.scope.processes;
        let runs = !processes.iter().all(is_gone) || counter.threads(0)? > 0;
        if runs || processes.is_empty() {
            has_stopped = false;
        } else if !place.may_start_again() {
            let limit = if place.lacks_cgroup() {
                "; its next start can be followed only with cgroups of version 2"
            } else {
                ""
            };
            report!("tarsier: {} has ended{limit}", place.name);
            return Ok(());
        } else if !has_stopped {
            has_stopped = true;
            let name = &place.name;
            report!(
                "tarsier: {name} has stopped; its next start is learnt from, too (Ctrl-C ends it)"
            );
        }
        save(counter, writer, &mut saved)?;
    }
}

fn pause(fds: &mut [PollFd]) -> Result<()> {
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: PAUSE_MS * 1_000_000,
    };
    match rustix::event::poll(fds, Some(&moment)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => bail!("poll: {errno}"),
    }
}

fn save(counter: &CallCounter, writer: &Writer, saved: &mut Instant) -> Result<()> {
    if writer.partial.is_some() && saved.elapsed() >= SAVE {
        writer.save_partial(&observed(&counter.counts()?))?;
        *saved = Instant::now();
    }
    Ok(())
}

/// Parses a time such as 90s, 10m or 2h.
fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86400),
        _ => None,
    };

    let seconds = digits.parse::<u64>().ok().zip(unit);
    match seconds.and_then(|(number, unit)| number.checked_mul(unit)) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => bail!("--for {text}: expected a number and s, m, h or d, such as 10m"),
    }
}

fn observed(counts: &CallCounts) -> Observed {
    let mut seen = Observed::default();
    for (&(arch, nr), &count) in &counts.calls {
        let is_wide = Abi::of(arch, nr).is_none_or(Abi::has_wide_args);
        let mask = if is_wide { u64::MAX } else { 0xffff_ffff };
        let Some(name) = seen.add(arch, nr, count) else {
            continue;
        };
        for &value in counts
            .values
            .get(&(arch, nr))
            .into_iter()
            .flat_map(|values| values.keys())
        {
            seen.add_value(name, value & mask);
        }
    }

    seen
}

fn print_counts(seen: &Observed) -> Result<()> {
    let mut rows: Vec<(&String, &u64)> = seen.calls.iter().collect();
    rows.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let mut out = std::io::stdout().lock();
    for (name, count) in rows {
        writeln!(out, "{count:>12} {name}")?;
    }
    Ok(())
}

fn summary(seen: &Observed, writer: &Writer) {
    let mut limited = seen
        .values
        .values()
        .filter(|values| values.len() <= VALUES_MAX)
        .count();
    if !writer.with_values {
        limited = 0;
    }
    let calls = match seen.calls.len() {
        1 => "1 system call".to_owned(),
        calls => format!("{calls} system calls"),
    };
    report!("tarsier: {calls}, {limited} of them for some values of an argument only");
    for &extra in &writer.extras {
        let names = seen.extra(extra, writer.context.native);
        if !names.is_empty() {
            report!("tarsier: also allowed, because {}:", extra.comment());
            say_wrapped(&names);
        }
    }

    for (abi, nr) in &seen.unnamed {
        report!(
            "tarsier: call {nr} of {} has no name: no profile can allow it",
            abi.oci_name()
        );
    }
}

/// Prints the calls that another profile allows and the program never used.
fn report(seen: &Observed, path: &Path, since: Option<String>, context: &Context) -> Result<()> {
    let policy = source::policy(path, context)?;
    let native: Abi = context.native;
    let unused = seen.unused(&policy, native);
    let since = since.map_or(String::new(), |since| format!(" since {since}"));
    report!(
        "tarsier: {} allows {} calls of {} that were never used{since}:",
        path.display(),
        unused.len(),
        native.systemd_name()
    );

    say_wrapped(&unused);
    Ok(())
}

fn say_wrapped(words: &[&str]) {
    let mut line = String::from("   ");
    for name in words {
        if line.len() + name.len() > 98 {
            report!("{line}");
            line = String::from("   ");
        }
        line = line + " " + name;
    }
    report!("{line}");
}
