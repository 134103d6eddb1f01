//! `tarsier report`: reports on logs by aureport's options.

mod options;
mod parts;
mod rows;

use crate::dialect;
use crate::progress::Progress;
use crate::search_command::logs::{self, Defaults, Input, ReadEnd, Source, Step};
use crate::search_command::pipeline;
use crate::shown;
use anyhow::Result;
use cli::messages::report;
use cli::report::REPORT_USAGE;
use options::{Extra, Instead, ReportOptions};
use query::overview::Overview;
use query::report::news::Appearances;
use query::report::top::{Field, Top};
use query::report::{Kind, List, Summary, NONE_FOUND};
use query::time::{use_environment, Locale};
use query::{Assembler, Batch, Dialect, EventView};
use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Exit status for errors, and for a list without lines.
const NOTHING: u8 = 1;
/// Bytes of output that are written at once.
const OUTPUT_BYTES: usize = 1 << 16;

/// Carries out `args`, the words after `tarsier report`. Returns aureport's exit status.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    let (dialect, args) = dialect::take(args);
    run_as(dialect, args)
}

/// Carries out aureport's options `args` in the dialect. Returns aureport's exit status.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run_as(dialect: Dialect, args: Vec<OsString>) -> Result<u8> {
    let words = dialect::words(args)?;
    use_environment(Locale::of(dialect));
    match ReportOptions::parse(&words, dialect) {
        Ok(options) => report(options),
        Err(Instead::Help) => {
            io::stdout().write_all(REPORT_USAGE.as_bytes())?;
            Ok(0)
        }
        Err(Instead::Version) => {
            match dialect {
                Dialect::Own => writeln!(io::stdout(), "tarsier {}", env!("CARGO_PKG_VERSION"))?,
                Dialect::Compat => writeln!(io::stdout(), "aureport version 4.0.2")?,
            }
            Ok(0)
        }
        Err(Instead::Fail(message)) => {
            report!("{message}");
            io::stdout().write_all(REPORT_USAGE.as_bytes())?;
            Ok(NOTHING)
        }
        Err(Instead::Refuse(message)) => {
            report!("{message}");
            Ok(NOTHING)
        }
    }
}

fn report(mut options: ReportOptions) -> Result<u8> {
    let request = &options.request;
    let defaults = logs::defaults(request.dialect)?;
    let mut out = Vec::new();
    if options.extra.is_some() {
        let input = Input::find(
            &options.inputs,
            options.use_logs,
            &defaults,
            request.dialect,
        );
        return match input {
            Ok(input) => watched(&input, request.dialect, || {
                Reader::new(&options, &defaults, out).run(&input)
            }),
            Err(message) => {
                report!("{message}");
                Ok(NOTHING)
            }
        };
    }
    let Some(title) = request.title() else {
        // aureport has begun its title by then.
        let which = match request.success {
            Some(true) => "\nSuccess ",
            Some(false) => "\nFailed ",
            None => "\n",
        };
        io::stdout().write_all(which.as_bytes())?;
        report!("Unimplemented option");
        return Ok(NOTHING);
    };
    out.extend_from_slice(title.as_bytes());
    let input = match Input::find(
        &options.inputs,
        options.use_logs,
        &defaults,
        request.dialect,
    ) {
        Ok(input) => input,
        Err(message) => {
            if request.dialect.is_compat() {
                shown::write(&out)?;
            }
            report!("{message}");
            return Ok(NOTHING);
        }
    };
    let dialect = request.dialect;
    if !dialect.is_compat() && !request.is_summary && input.names_hosts() {
        options.request.has_hosts = true;
        out = options.request.title().unwrap_or_default().into_bytes();
    }
    watched(&input, dialect, || print(&options, &defaults, &input, out))
}

/// Runs `read` with its progress on a terminal. Returns the exit status.
fn watched(input: &Input, dialect: Dialect, read: impl FnOnce() -> Result<u8>) -> Result<u8> {
    let is_watched = !dialect.is_compat();
    let progress = is_watched.then(|| Progress::of(input)).transpose()?;
    let status = read()?;
    Ok(progress.and_then(Progress::end).unwrap_or(status))
}

/// Prints the report on `input` behind `out`. Returns the exit status.
fn print(
    options: &ReportOptions,
    defaults: &Defaults,
    input: &Input,
    mut out: Vec<u8>,
) -> Result<u8> {
    let request = &options.request;
    if request.is_summary {
        if let Some(parts) = parts::summary(options, input, defaults)? {
            if parts.last == (0, 0) && request.dialect == Dialect::Own {
                out.extend_from_slice(NONE_FOUND.as_bytes());
                shown::write(&out)?;
                return Ok(NOTHING);
            }
            let mut summary = parts.summary;
            summary.write(parts.first, parts.last, &mut out);
            shown::write(&out)?;
            return Ok(0);
        }
    }
    Reader::new(options, defaults, out).run(input)
}

/// Destination of an event.
enum Target {
    Summary(Box<Summary>),
    List(Box<List>),
    Top(Box<Top>),
    News(Box<Appearances>),
    Overview(Box<Overview>),
    /// Nothing but the event's time counts.
    Log,
}

/// Reads logs from beginning to end.
struct Reader<'o> {
    options: &'o ReportOptions,
    timeout_s: u64,
    target: Target,
    out: Vec<u8>,
    is_found: bool,
    /// Time of the first and the last event of this file.
    first: Option<(u64, u32)>,
    last: (u64, u32),
    /// Time of the latest event of all files.
    latest: (u64, u32),
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReportOptions, defaults: &Defaults, out: Vec<u8>) -> Reader<'o> {
        let request = options.request.clone();
        Reader {
            options,
            timeout_s: options.timeout_s.unwrap_or(defaults.whole_s),
            target: match (&options.extra, request.kind) {
                (Some(Extra::Top { fields, .. }), _) => {
                    Target::Top(Box::new(Top::new(request, fields.clone())))
                }
                (Some(Extra::Changes { .. }), _) => {
                    Target::News(Box::new(Appearances::new(request)))
                }
                (Some(Extra::Overview), _) => Target::Overview(Box::default()),
                (None, Kind::Log) => Target::Log,
                (None, _) if request.is_summary => {
                    Target::Summary(Box::new(Summary::new(request, 0)))
                }
                (None, _) => Target::List(Box::new(List::new(request))),
            },
            out,
            is_found: false,
            first: None,
            last: (0, 0),
            latest: (0, 0),
        }
    }

    fn run(mut self, input: &Input) -> Result<u8> {
        let dialect = self.options.request.dialect;
        if !dialect.is_compat() && !matches!(self.target, Target::Log) {
            return self.run_in_parallel(input);
        }
        let mut assembler = Assembler::new(dialect, self.timeout_s, self.options.range());
        let end = input.read(&mut assembler, |assembler, step| {
            if matches!(step, Step::End { is_last: true, .. }) {
                assembler.finish();
            }
            self.events(assembler)?;
            match step {
                Step::Line => say_bad_times(assembler),
                Step::End {
                    source, is_last, ..
                } => {
                    self.end_of_file(source);
                    if !is_last {
                        (self.first, self.last) = (None, (0, 0));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let ReadEnd::Refused(message) = end {
            self.flush()?;
            report!("{message}");
            return Ok(NOTHING);
        }
        let first = assembler.first_time().unwrap_or((0, 0));
        let status = self.end(first);
        self.flush()?;
        Ok(match end {
            ReadEnd::Damaged => NOTHING,
            _ => status,
        })
    }

    /// Gives the events to several threads, and puts together what they make of them.
    fn run_in_parallel(mut self, input: &Input) -> Result<u8> {
        let dialect = self.options.request.dialect;
        let assembler = Assembler::new(dialect, self.timeout_s, self.options.range());
        let options = self.options;
        let finished = pipeline::run(
            input,
            assembler,
            || Counter::new(options),
            Counter::batch,
            |part, _| self.take(part),
        )?;
        if let ReadEnd::Refused(message) = finished.end {
            self.flush()?;
            report!("{message}");
            return Ok(NOTHING);
        }
        if let Target::Summary(whole) = &mut self.target {
            finished
                .workers
                .into_iter()
                .filter_map(|counter| counter.summary)
                .for_each(|summary| whole.merge(summary));
        }
        let status = self.end(finished.assembler.first_time().unwrap_or((0, 0)));
        self.flush()?;
        Ok(match finished.end {
            ReadEnd::Damaged => NOTHING,
            _ => status,
        })
    }

    /// Takes what a thread has made of a batch.
    fn take(&mut self, part: Part) -> Result<()> {
        self.latest = self.latest.max(part.latest);
        match (&mut self.target, part.made) {
            (Target::List(list), Made::Lines(text, places)) => {
                self.is_found |= !places.is_empty();
                list.write(&text, &places, &mut self.out);
            }
            (Target::Top(top), Made::Top(part)) => top.merge(*part),
            (Target::News(seen), Made::News(part)) => seen.merge(*part),
            (Target::Overview(overview), Made::Overview(part)) => overview.merge(*part),
            _ => {}
        }
        if self.out.len() >= OUTPUT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Prints what was counted, and returns the exit status. `first` is the time at which the logs begin.
    fn end(&mut self, first: (u64, u32)) -> u8 {
        let last = match self.options.request.dialect {
            Dialect::Own => self.latest,
            // The end of the last file, as in aureport.
            _ => self.last,
        };
        if self.options.request.dialect == Dialect::Own && self.latest == (0, 0) {
            self.out.extend_from_slice(NONE_FOUND.as_bytes());
            return NOTHING;
        }
        let (format, escape) = (self.options.format, self.options.request.escape);
        match (
            std::mem::replace(&mut self.target, Target::Log),
            &self.options.extra,
        ) {
            (Target::Summary(mut summary), _) => {
                summary.write(first, last, &mut self.out);
            }
            (Target::List(_), _) if !self.is_found => {
                self.out.extend_from_slice(NONE_FOUND.as_bytes());
                return NOTHING;
            }
            (Target::Top(top), Some(Extra::Top { rows_max, .. })) => {
                let names: Vec<_> = top
                    .fields()
                    .iter()
                    .map(|field: &Field| field.name())
                    .collect();
                let rows = top.finish(*rows_max);
                rows::write_top(&names, rows, format, escape, &mut self.out);
            }
            (Target::News(seen), Some(Extra::Changes { since_s })) => {
                rows::write_news(seen.finish(*since_s), format, escape, &mut self.out);
            }
            (Target::Overview(overview), _) => {
                rows::write_overview(overview.finish(), format, escape, &mut self.out);
            }
            _ => {}
        }
        0
    }

    fn events(&mut self, assembler: &mut Assembler) -> Result<()> {
        while let Some(event) = assembler.pop() {
            self.event(event.view());
            if self.out.len() >= OUTPUT_BYTES {
                self.flush()?;
            }
            assembler.recycle(event);
        }
        Ok(())
    }

    fn event(&mut self, event: EventView<'_>) {
        let (sec, msec, _) = event.time();
        self.first = self.first.or(Some((sec, msec)));
        self.latest = self.latest.max((sec, msec));
        self.last = match self.options.request.dialect {
            Dialect::Own => self.last.max((sec, msec)),
            _ => (sec, msec),
        };
        match &mut self.target {
            Target::Summary(summary) => summary.add(event),
            Target::List(list) => self.is_found |= list.add(event, &mut self.out),
            Target::Top(top) => top.add(event),
            Target::News(seen) => seen.add(event),
            Target::Overview(overview) => overview.add(event),
            Target::Log => {}
        }
    }

    fn end_of_file(&mut self, source: &Source) {
        if !matches!(self.target, Target::Log) {
            return;
        }
        let name = match source {
            Source::Stdin => "stdin".to_owned(),
            source => source.to_string(),
        };
        self.out.extend_from_slice(name.as_bytes());
        let Some(first) = self.first else {
            self.out.extend_from_slice(b": no records\n");
            return;
        };
        for (before, (sec, msec)) in [(": ", first), (" - ", self.last)] {
            self.out.extend_from_slice(before.as_bytes());
            query::time::write_date_time(sec, &mut self.out);
            self.out.extend_from_slice(format!(".{msec:03}").as_bytes());
        }
        self.out.push(b'\n');
    }

    fn flush(&mut self) -> io::Result<()> {
        shown::write(&self.out)?;
        self.out.clear();
        io::stdout().flush()
    }
}

/// Counts, or lists, in a thread of its own.
struct Counter<'o> {
    options: &'o ReportOptions,
    summary: Option<Summary>,
    list: Option<List>,
}

/// What a thread has made of a batch.
struct Part {
    /// Time of the latest event.
    latest: (u64, u32),
    made: Made,
}

enum Made {
    /// Lines, and where their numbers belong.
    Lines(Vec<u8>, Vec<usize>),
    Top(Box<Top>),
    News(Box<Appearances>),
    Overview(Box<Overview>),
    /// It was counted.
    Nothing,
}

impl<'o> Counter<'o> {
    fn new(options: &'o ReportOptions) -> Counter<'o> {
        let request = &options.request;
        let is_plain = options.extra.is_none();
        Counter {
            options,
            summary: (is_plain && request.is_summary).then(|| Summary::new(request.clone(), 0)),
            list: (is_plain && !request.is_summary).then(|| List::of_part(request.clone())),
        }
    }

    fn batch(&mut self, batch: &Batch) -> Part {
        let times = batch.events().map(|event| (event.time().0, event.time().1));
        let latest = times.max().unwrap_or((0, 0));
        let request = || self.options.request.clone();
        let made = match &self.options.extra {
            Some(Extra::Top { fields, .. }) => {
                let mut top = Top::new(request(), fields.clone());
                batch.events().for_each(|event| top.add(event));
                Made::Top(Box::new(top))
            }
            Some(Extra::Changes { .. }) => {
                let mut seen = Appearances::new(request());
                batch.events().for_each(|event| seen.add(event));
                Made::News(Box::new(seen))
            }
            Some(Extra::Overview) => {
                let mut overview = Overview::default();
                let nodes = &self.options.request.nodes;
                let is_asked_for = |event: &EventView<'_>| {
                    nodes.is_empty() || nodes.iter().any(|node| event.node() == Some(node))
                };
                let events = batch.events().filter(is_asked_for);
                events.for_each(|event| overview.add(event));
                Made::Overview(Box::new(overview))
            }
            None => self.count(batch),
        };
        Part { latest, made }
    }

    fn count(&mut self, batch: &Batch) -> Made {
        if let Some(summary) = &mut self.summary {
            batch.events().for_each(|event| summary.add(event));
        }
        let Some(list) = &mut self.list else {
            return Made::Nothing;
        };
        let mut text = Vec::new();
        for event in batch.events() {
            list.add(event, &mut text);
        }
        Made::Lines(text, list.take_places())
    }
}

fn say_bad_times(assembler: &mut Assembler) {
    for text in assembler.take_bad_times() {
        let text = String::from_utf8_lossy(&text).into_owned();
        report!("Error extracting time stamp ({text})");
    }
}
