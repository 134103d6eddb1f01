//! Questions that ausearch does not have: `--touched`, `--tree`, `--timeline`, `--unit`, `--container`, `--where`,
//! and the other options of `tarsier search` alone.

use super::conditions::Conditions;
use super::json::{Json, JsonForm, Mapped, Objects};
use super::options::{Format, SearchOptions};
use super::users;
use query::expr::Expr;
use query::index::Needed;
use query::time::{self, Bound};
use query::{
    Dialect, Escape, Event, EventSummary, EventView, Interpreter, MachineNames, Matcher, Touched,
    Tree,
};

/// Whether indexes are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum UseIndex {
    /// Indexes are read; root also makes those of rotated files.
    #[default]
    Yes,
    /// `--no-index`.
    No,
}

/// Options for reading the log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) use_index: UseIndex,
    pub(super) build_index: bool,
    pub(super) follow: bool,
}

/// Session and process of `--timeline`.
#[derive(Debug, Clone, Copy, Default)]
struct Timeline {
    session: Option<u32>,
    pid: Option<i32>,
}

/// Options beyond ausearch's, ready for events.
pub(super) struct SearchArgs {
    pub(super) reading: Reading,
    conditions: Conditions,
    timeline: Option<Timeline>,
    touched: Option<TouchedSearch>,
    tree: Option<Tree>,
    objects: Option<Objects>,
    /// Nodes of ausearch's `-n`; none: all.
    nodes: Vec<Vec<u8>>,
    interpreter: Interpreter,
}

/// `--touched`, which reads the log several times: first to learn inodes, at last to find events.
struct TouchedSearch {
    touched: Touched,
    is_learning: bool,
    /// Whether this reading has found something new.
    has_learnt: bool,
}

impl TouchedSearch {
    fn new(what: &[u8]) -> TouchedSearch {
        TouchedSearch {
            touched: Touched::new(what),
            is_learning: true,
            has_learnt: false,
        }
    }

    /// Whether the event is to be shown. While the search learns, none is.
    fn takes(&mut self, event: EventView<'_>, summary: &EventSummary) -> bool {
        if self.is_learning {
            self.has_learnt |= self.touched.learn(event, summary);
            return false;
        }
        self.touched.is_touched(event, summary)
    }

    /// Ends a reading of the log. True if it has to be read once more.
    fn reads_again(&mut self) -> bool {
        if !self.is_learning {
            return false;
        }
        // Another first reading only if the last one has found something new.
        self.is_learning = std::mem::take(&mut self.has_learnt);
        self.touched.restart();
        true
    }
}

/// Outcome of an event.
pub(super) enum Taken {
    /// The event is not asked for.
    No,
    /// The caller prints the event in the format of the search.
    Print,
    /// The event has been printed.
    Printed,
}

/// Formats in which an event is an object.
const OBJECT_FORMATS: [&str; 5] = ["json", "jsonl", "ecs", "ecs-auditbeat", "ocsf"];

/// Options with a value.
const VALUES: [&str; 7] = [
    "--as-host",
    "--touched",
    "--tree",
    "--timeline",
    "--unit",
    "--container",
    "--where",
];

impl SearchArgs {
    fn nothing() -> SearchArgs {
        let names = MachineNames {
            user: users::user_name,
            ..MachineNames::none()
        };

        SearchArgs {
            reading: Reading::default(),
            conditions: Conditions::default(),
            timeline: None,
            touched: None,
            tree: None,
            objects: None,
            nodes: Vec::new(),
            interpreter: Interpreter::new(Dialect::Own, Escape::Raw, names),
        }
    }

    /// Takes the options of `tarsier search` alone out of `words`. With `--compat` there are none.
    ///
    /// # Errors
    /// The message for the user.
    pub(super) fn take(
        words: &[String],
        dialect: Dialect,
    ) -> Result<(SearchArgs, Vec<String>), String> {
        let mut asked = SearchArgs::nothing();
        if dialect.is_compat() {
            return Ok((asked, words.to_vec()));
        }

        let (mut others, mut at) = (Vec::new(), 0);
        let (mut format, mut host) = (None::<String>, None::<String>);
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1).map(String::as_str);
            at += 1;
            match (word.as_str(), next) {
                ("--no-index", _) => asked.reading.use_index = UseIndex::No,
                ("--build-index", _) => asked.reading.build_index = true,
                ("--follow", _) => asked.reading.follow = true,
                ("--format", Some(form)) if OBJECT_FORMATS.contains(&form) => {
                    format = Some(form.to_owned());
                    at += 1;
                }
                ("--as-host", Some(name)) if !name.is_empty() => {
                    host = Some(name.to_owned());
                    at += 1;
                }
                ("--since" | "--until", _) => {
                    let name = if word == "--since" { "-ts" } else { "-te" };
                    others.push(name.to_owned());
                }
                (option, Some(value)) if VALUES.contains(&option) => {
                    asked.set(option, value)?;
                    at += 1;
                }
                (option, None) if VALUES.contains(&option) => {
                    return Err(format!("Argument is required for {option}"));
                }
                _ => others.push(word.clone()),
            }
        }

        asked.set_format(format.as_deref(), host.as_deref())?;
        let whole = [asked.touched.is_some(), asked.tree.is_some()]
            .into_iter()
            .filter(|is_it| *is_it)
            .count();
        if whole > 1 || (whole == 1 && asked.reading.follow) {
            return Err(
                "tarsier: search: --touched, --tree and --follow exclude each other".to_owned(),
            );
        }

        Ok((asked, others))
    }

    /// Sets the format of objects. `host`: the host of events without `node=`.
    fn set_format(&mut self, format: Option<&str>, host: Option<&str>) -> Result<(), String> {
        self.objects = match format {
            None => None,
            Some("json") => Some(Objects::Json(Box::new(Json::new(JsonForm::Array)))),
            Some("jsonl") => Some(Objects::Json(Box::new(Json::new(JsonForm::Lines)))),
            Some(name) => Mapped::new(name, host.unwrap_or_default()).map(Objects::Mapped),
        };
        match (&self.objects, host) {
            (Some(Objects::Mapped(_)), _) | (_, None) => Ok(()),
            (_, Some(_)) => Err("tarsier: search: --as-host goes with --format ecs or ocsf".into()),
        }
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let bytes = value.as_bytes().to_vec();
        match option {
            "--touched" => self.touched = Some(TouchedSearch::new(&bytes)),
            "--tree" => self.tree = Some(tree(value)?),
            "--unit" => self.conditions.workloads.units.push(bytes),
            "--container" => self.conditions.workloads.containers.push(bytes),
            "--timeline" => self.set_timeline(value)?,
            _ => {
                let expr = Expr::parse(value)
                    .map_err(|error| format!("tarsier: search: --where: {error}"))?;
                self.conditions.exprs.push((value.to_owned(), expr));
            }
        }

        Ok(())
    }

    fn set_timeline(&mut self, value: &str) -> Result<(), String> {
        let wrong =
            || format!("tarsier: search: --timeline {value}: expected ses:N, pid:N or unit:NAME");
        let timeline = self.timeline.get_or_insert_default();
        match value.split_once(':') {
            Some(("ses", number)) => timeline.session = Some(number.parse().map_err(|_| wrong())?),
            Some(("pid", number)) => timeline.pid = Some(number.parse().map_err(|_| wrong())?),
            Some(("unit", name)) if !name.is_empty() => {
                self.conditions
                    .workloads
                    .units
                    .push(name.as_bytes().to_vec());
            }
            _ => return Err(wrong()),
        }

        Ok(())
    }

    /// Puts into ausearch's options what they can express.
    ///
    /// # Errors
    /// The message about options that exclude each other.
    pub(super) fn complete(&mut self, options: &mut SearchOptions) -> Result<(), String> {
        if self.objects.is_some() && options.output.format != Format::Default {
            return Err("Multiple output formats, use only 1".to_owned());
        }
        self.nodes.clone_from(&options.filter.nodes);
        let Timeline { session, pid } = self.timeline.unwrap_or_default();
        options.filter.session = session.or(options.filter.session);
        options.filter.pid = pid.or(options.filter.pid);
        Ok(())
    }

    /// Whether all events have to be seen, not only those that match.
    pub(super) fn needs_all(&self) -> bool {
        self.tree.is_some() || self.touched.is_some()
    }

    /// Adds what blocks of logs must hold.
    pub(super) fn add_needed(&self, needed: &mut Needed) {
        let texts = self.conditions.workloads.texts();
        texts.for_each(|text| needed.add_text(text));
    }

    /// Tells the matcher which texts events must have.
    pub(super) fn add_texts(&self, matcher: &mut Matcher) {
        // The others see more events than those that match.
        if !self.needs_all() {
            let texts = self.conditions.workloads.texts();
            texts.for_each(|text| matcher.require_text(text));
        }
    }

    /// The part of the question that one event answers, for another thread. `None` if the answer depends on other events.
    pub(super) fn of_events(&self) -> Option<OfEvents> {
        if self.needs_all() || self.reading.follow {
            return None;
        }

        let objects = match &self.objects {
            Some(objects) => Some(objects.of_thread()?),
            None => None,
        };
        Some(OfEvents {
            conditions: self.conditions.again()?,
            has_timeline: self.timeline.is_some(),
            objects,
            interpreter: SearchArgs::nothing().interpreter,
        })
    }

    fn is_of_nodes(&self, event: EventView<'_>) -> bool {
        is_of(&self.nodes, event)
    }

    /// What a thread of its own looks up for [`SearchArgs::seen`]. `None` if no question is about all events.
    pub(super) fn of_all(&self) -> Option<OfAll> {
        if !self.needs_all() || self.reading.follow {
            return None;
        }
        Some(OfAll {
            conditions: self.conditions.again()?,
            nodes: self.nodes.clone(),
            interpreter: SearchArgs::nothing().interpreter,
        })
    }

    /// Takes an event. `is_match` tells whether it matches ausearch's options.
    pub(super) fn event(&mut self, event: &Event, is_match: bool, out: &mut Vec<u8>) -> Taken {
        if !is_match && !self.needs_all() {
            return Taken::No;
        }

        let is_asked_for = |asked: &SearchArgs| asked.conditions.hold(event, &asked.interpreter);
        if !self.needs_all() && !is_asked_for(self) {
            return Taken::No;
        }
        if !self.needs_all() && self.timeline.is_none() {
            return self.print(event, out);
        }

        // What another host did says nothing about the processes and files of this one.
        if self.needs_all() && !self.is_of_nodes(event.view()) {
            return Taken::No;
        }
        let summary = EventSummary::of(event, &self.interpreter);
        let is_match = is_match && (!self.needs_all() || is_asked_for(self));
        self.follow(event, &summary, is_match, out)
    }

    /// Takes an event that another thread has looked at.
    pub(super) fn seen(&mut self, event: &Event, seen: &Seen, out: &mut Vec<u8>) -> Taken {
        self.follow(event, &seen.summary, seen.is_match, out)
    }

    /// Follows files and processes through an event. `is_match`: it is to be printed if it belongs to them.
    fn follow(
        &mut self,
        event: &Event,
        summary: &EventSummary,
        is_match: bool,
        out: &mut Vec<u8>,
    ) -> Taken {
        let is_touched = self
            .touched
            .as_mut()
            .is_none_or(|touched| touched.takes(event.view(), summary));
        if !is_touched {
            return Taken::No;
        }

        if let Some(tree) = &mut self.tree {
            tree.add(event.view(), summary, is_match);
            return Taken::No;
        }

        if !is_match {
            return Taken::No;
        }

        if self.timeline.is_some() && self.objects.is_none() {
            summary.write_line(event, out);
            return Taken::Printed;
        }

        self.print(event, out)
    }

    /// Whether events are printed in the format of the search.
    pub(super) fn is_printed_by_format(&self) -> bool {
        self.objects.is_none() && self.timeline.is_none()
    }

    fn print(&mut self, event: &Event, out: &mut Vec<u8>) -> Taken {
        match &mut self.objects {
            Some(objects) => {
                objects.write(event, out);
                Taken::Printed
            }
            None => Taken::Print,
        }
    }

    /// Ends a reading of the log. True if it has to be read once more.
    pub(super) fn reads_again(&mut self) -> bool {
        self.touched
            .as_mut()
            .is_some_and(TouchedSearch::reads_again)
    }

    /// Ends the output. Returns whether it prints events.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(objects) = &mut self.objects {
            objects.end(out);
        }
        self.tree.as_ref().is_some_and(|tree| tree.write(out))
    }
}

/// Whether an event is of one of the nodes, if there are any.
fn is_of(nodes: &[Vec<u8>], event: EventView<'_>) -> bool {
    nodes.is_empty() || nodes.iter().any(|node| Some(&node[..]) == event.node())
}

/// What a question about all events has to know of one.
pub(super) struct Seen {
    summary: EventSummary,
    is_match: bool,
}

/// Looks at events for a question about all of them.
pub(super) struct OfAll {
    conditions: Conditions,
    nodes: Vec<Vec<u8>>,
    interpreter: Interpreter,
}

impl OfAll {
    /// What has to be known of an event; `None` if nothing. `is_match` tells whether it matches ausearch's options.
    pub(super) fn see(&self, event: &Event, is_match: bool) -> Option<Seen> {
        is_of(&self.nodes, event.view()).then(|| Seen {
            summary: EventSummary::of(event, &self.interpreter),
            is_match: is_match && self.conditions.hold(event, &self.interpreter),
        })
    }
}

/// What is asked of each event alone.
pub(super) struct OfEvents {
    conditions: Conditions,
    has_timeline: bool,
    objects: Option<Objects>,
    interpreter: Interpreter,
}

impl OfEvents {
    /// Takes an event that matches ausearch's options.
    pub(super) fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> Taken {
        if !self.conditions.hold(event, &self.interpreter) {
            return Taken::No;
        }
        if let Some(objects) = &mut self.objects {
            objects.write(event, out);
            return Taken::Printed;
        }
        if self.has_timeline {
            EventSummary::of(event, &self.interpreter).write_line(event, out);
            return Taken::Printed;
        }

        Taken::Print
    }
}

/// `PID` or `PID@TIME`.
fn tree(value: &str) -> Result<Tree, String> {
    let wrong = |what: &str| format!("tarsier: search: --tree {value}: {what}");
    let (pid, at) = match value.split_once('@') {
        Some((pid, at)) => (pid, Some(at)),
        None => (value, None),
    };
    let pid = pid.parse().map_err(|_| wrong("expected PID or PID@TIME"))?;
    let at = at.map(moment).transpose().map_err(|error| wrong(&error))?;
    Ok(Tree::new(pid, at))
}

/// Seconds since 1970 with or without milliseconds, a time of day, or date and time of day.
fn moment(text: &str) -> Result<(u64, u32), String> {
    let (sec, msec) = text.split_once('.').unwrap_or((text, "999"));
    if let (Ok(sec), Ok(msec)) = (sec.parse(), msec.parse()) {
        return Ok((sec, msec));
    }
    let (date, time) = match text.split_once(' ') {
        Some((date, time)) => (Some(date), Some(time)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    let sec = time::parse(Bound::End, date, time)?;
    Ok((sec.try_into().unwrap_or(0), 999))
}
