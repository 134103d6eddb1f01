//! Questions that ausearch does not have: `--touched`, `--tree`, `--timeline`, `--unit`, `--container`, `--where`,
//! and the other options of `tarsier search` alone.

use super::index::UseIndex;
use super::json::{Json, JsonForm};
use super::options::Options;
use super::users;
use query::expr::Expr;
use query::index::Needed;
use query::time::{self, Bound};
use query::{Dialect, Escape, Event, Interpreter, MachineNames, RecordFields, Told, Touched, Tree};

/// What is asked for beyond ausearch's options.
pub(super) struct Asked {
    pub(super) use_index: UseIndex,
    pub(super) build_index: bool,
    pub(super) follow: bool,
    /// Units, of which the event must be of all.
    units: Vec<Vec<u8>>,
    containers: Vec<Vec<u8>>,
    exprs: Vec<Expr>,
    /// Sessions and processes of `--timeline`.
    session: Option<u32>,
    pid: Option<i32>,
    has_timeline: bool,
    touched: Option<Touched>,
    /// The log is read for what `--touched` has to know first.
    is_learning: bool,
    has_learnt: bool,
    tree: Option<Tree>,
    json: Option<Json>,
    interpreter: Interpreter,
}

/// What became of an event.
pub(super) enum Taken {
    /// It is not asked for.
    No,
    /// It is to be printed in the format of the search.
    Print,
    /// It is printed.
    Printed,
}

/// Options with a value.
const VALUES: [&str; 6] = [
    "--touched",
    "--tree",
    "--timeline",
    "--unit",
    "--container",
    "--where",
];

impl Asked {
    fn nothing() -> Asked {
        let names = MachineNames {
            user: users::user_name,
            ..MachineNames::none()
        };
        Asked {
            use_index: UseIndex::Yes,
            build_index: false,
            follow: false,
            units: Vec::new(),
            containers: Vec::new(),
            exprs: Vec::new(),
            session: None,
            pid: None,
            has_timeline: false,
            touched: None,
            is_learning: false,
            has_learnt: false,
            tree: None,
            json: None,
            interpreter: Interpreter::new(Dialect::Own, Escape::Raw, names),
        }
    }

    /// Takes the own options out of `words`; a peer's dialect has none of them.
    ///
    /// # Errors
    /// The message for the user.
    pub(super) fn take(words: &[String], dialect: Dialect) -> Result<(Asked, Vec<String>), String> {
        let mut asked = Asked::nothing();
        if dialect.is_peer() {
            return Ok((asked, words.to_vec()));
        }
        let (mut others, mut at) = (Vec::new(), 0);
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1).map(String::as_str);
            at += 1;
            match (word.as_str(), next) {
                ("--no-index", _) => asked.use_index = UseIndex::No,
                ("--build-index", _) => asked.build_index = true,
                ("--follow", _) => asked.follow = true,
                ("--format", Some(form @ ("json" | "jsonl"))) => {
                    let form = if form == "json" {
                        JsonForm::Array
                    } else {
                        JsonForm::Lines
                    };
                    asked.json = Some(Json::new(form));
                    at += 1;
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
        let whole = [asked.touched.is_some(), asked.tree.is_some()]
            .into_iter()
            .filter(|is_it| *is_it)
            .count();
        if whole > 1 || (whole == 1 && asked.follow) {
            return Err(
                "tarsier: search: --touched, --tree and --follow exclude each other".to_owned(),
            );
        }
        Ok((asked, others))
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let bytes = value.as_bytes().to_vec();
        match option {
            "--touched" => self.touched = Some(Touched::new(&bytes)),
            "--tree" => self.tree = Some(tree(value)?),
            "--unit" => self.units.push(bytes),
            "--container" => self.containers.push(bytes),
            "--timeline" => self.set_timeline(value)?,
            _ => {
                let expr = Expr::parse(value)
                    .map_err(|error| format!("tarsier: search: --where: {error}"))?;
                self.exprs.push(expr);
            }
        }
        self.is_learning = self.touched.is_some();
        Ok(())
    }

    fn set_timeline(&mut self, value: &str) -> Result<(), String> {
        let wrong =
            || format!("tarsier: search: --timeline {value}: expected ses:N, pid:N or unit:NAME");
        self.has_timeline = true;
        match value.split_once(':') {
            Some(("ses", number)) => self.session = Some(number.parse().map_err(|_| wrong())?),
            Some(("pid", number)) => self.pid = Some(number.parse().map_err(|_| wrong())?),
            Some(("unit", name)) if !name.is_empty() => self.units.push(name.as_bytes().to_vec()),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// Puts into ausearch's options what they can express.
    pub(super) fn complete(&self, options: &mut Options) {
        options.filter.session = self.session.or(options.filter.session);
        options.filter.pid = self.pid.or(options.filter.pid);
    }

    /// Whether all events have to be seen, not only those that match.
    pub(super) fn needs_all(&self) -> bool {
        self.tree.is_some() || self.touched.is_some()
    }

    /// Adds what blocks of logs must hold.
    pub(super) fn add_needed(&self, needed: &mut Needed) {
        for unit in &self.units {
            needed.add_text(unit, false);
        }
        for container in &self.containers {
            needed.add_text(container, false);
        }
    }

    /// Takes an event, of which ausearch's options say that it matches or does not.
    pub(super) fn event(&mut self, event: &Event, is_match: bool, out: &mut Vec<u8>) -> Taken {
        if !is_match && !self.needs_all() {
            return Taken::No;
        }
        if !self.needs_all() && !self.is_asked_for(event) {
            return Taken::No;
        }
        if !self.needs_all() && !self.has_timeline {
            return self.print(event, out);
        }
        let told = Told::of(event, &self.interpreter);
        if self.is_learning {
            if let Some(touched) = &mut self.touched {
                self.has_learnt |= touched.learn(&told);
            }
            return Taken::No;
        }
        let is_match = is_match && (!self.needs_all() || self.is_asked_for(event));
        if let Some(tree) = &mut self.tree {
            tree.add(event, &told, is_match);
            return Taken::No;
        }
        let is_touched = self
            .touched
            .as_mut()
            .is_none_or(|touched| touched.is_touched(&told));
        if !is_touched || !is_match {
            return Taken::No;
        }
        if self.has_timeline && self.json.is_none() {
            told.write_line(event, out);
            return Taken::Printed;
        }
        self.print(event, out)
    }

    fn print(&mut self, event: &Event, out: &mut Vec<u8>) -> Taken {
        match &mut self.json {
            Some(json) => {
                json.write(event, out);
                Taken::Printed
            }
            None => Taken::Print,
        }
    }

    fn is_asked_for(&self, event: &Event) -> bool {
        self.exprs
            .iter()
            .all(|expr| expr.matches(event, &self.interpreter))
            && self.units.iter().all(|unit| {
                has_workload(event, &[b"unit", b"user_unit"], |name| is_unit(name, unit))
            })
            && self
                .containers
                .iter()
                .all(|id| has_workload(event, &[b"container"], |name| name.starts_with(id)))
    }

    /// Ends a reading of the log. True if it has to be read once more.
    pub(super) fn reads_again(&mut self) -> bool {
        if !self.is_learning {
            return false;
        }
        // Another first reading only if the last one has found something new.
        self.is_learning = std::mem::take(&mut self.has_learnt);
        if let Some(touched) = &mut self.touched {
            touched.restart();
        }
        true
    }

    /// Ends the output. Returns whether that says something.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(json) = &mut self.json {
            json.end(out);
        }
        self.tree.as_ref().is_some_and(|tree| tree.write(out))
    }
}

fn is_unit(name: &[u8], unit: &[u8]) -> bool {
    name == unit || name.strip_suffix(b".service") == Some(unit)
}

/// Whether a field with one of the names says so, among those of ENRICHED or of a message.
fn has_workload(event: &Event, fields: &[&[u8]], is_it: impl Fn(&[u8]) -> bool) -> bool {
    event.records().any(|record| {
        let record = RecordFields::read(&record, Dialect::Own);
        fields.iter().any(|field| {
            let name = record.names.as_ref().and_then(|names| names.get(field));
            name.or_else(|| record.get(field))
                .is_some_and(|value| is_it(&unquoted(value)))
        })
    })
}

fn unquoted(value: &[u8]) -> Vec<u8> {
    match value {
        [b'"', inner @ .., b'"'] => inner.to_vec(),
        // A container's id is 64 hex digits in quotes; without quotes they are encoded text.
        _ if !value.is_empty() && event::text::is_hex(value) && value.len() % 2 == 0 => {
            let mut text = Vec::new();
            event::text::unhex(&mut text, value);
            text
        }
        _ => value.to_vec(),
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
