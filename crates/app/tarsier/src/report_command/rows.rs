//! The forms in which `--top`, `--changes` and `--overview` are printed.

use query::overview::{self, Finished, Hits, Shown, Values};
use query::report::news::News;
use query::report::top::{Rows, Time};
use query::Escape;
use serde_json::{json, Map, Value};

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    Csv,
    Json,
    Jsonl,
}

impl Format {
    pub(crate) fn from_name(name: &str) -> Option<Format> {
        match name {
            "text" => Some(Format::Text),
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// A value of a cell.
enum Cell {
    Text(Option<Vec<u8>>),
    Number(u64),
    Time(Time),
}

/// A table: the names of its columns, its rows, and the notes below it.
struct Table {
    name: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// Figures of the whole report, each with its sentence in the text form.
    notes: Vec<(&'static str, Value, Option<String>)>,
}

/// Appends the rows of `--top`.
pub(crate) fn write_top(
    fields: &[&'static str],
    rows: Rows,
    format: Format,
    escape: Escape,
    out: &mut Vec<u8>,
) {
    let others = (rows.other_rows > 0).then(|| {
        format!(
            "{} further rows with {} events",
            rows.other_rows, rows.other_hits
        )
    });

    let table = Table {
        name: "top",
        columns: [&["hits", "failures", "first", "last"], fields].concat(),
        notes: vec![
            ("other_rows", rows.other_rows.into(), others),
            ("other_hits", rows.other_hits.into(), None),
            unkept(rows.unkept_hits),
        ],
        rows: rows
            .rows
            .into_iter()
            .map(|row| {
                let counts = [
                    Cell::Number(row.hits),
                    Cell::Number(row.failures),
                    Cell::Time(row.first),
                    Cell::Time(row.last),
                ];
                let values = row.values.into_iter().map(Cell::Text);
                counts.into_iter().chain(values).collect()
            })
            .collect(),
    };

    table.write(format, escape, out);
}

/// Appends what `--changes` found.
pub(crate) fn write_news(news: News, format: Format, escape: Escape, out: &mut Vec<u8>) {
    let since = (news.since_s, 0);
    let is_whole = news.log_first.is_some_and(|first| first.0 < news.since_s);
    let everything = match news.log_first {
        Some(first) if !is_whole => Some(format!(
            "the log begins at {}: everything in it is new",
            date(first)
        )),
        _ => None,
    };

    let table = Table {
        name: "new",
        columns: vec!["first", "last", "hits", "failures", "what", "value"],
        notes: vec![
            (
                "since",
                seconds(since),
                Some(format!("since {}", date(since))),
            ),
            ("has_before", is_whole.into(), everything),
            unkept(news.unkept_hits),
        ],
        rows: news
            .news
            .into_iter()
            .map(|new| {
                vec![
                    Cell::Time(new.first),
                    Cell::Time(new.last),
                    Cell::Number(new.hits),
                    Cell::Number(new.failures),
                    Cell::Text(Some(new.what.as_bytes().to_vec())),
                    Cell::Text(Some(new.value)),
                ]
            })
            .collect(),
    };

    table.write(format, escape, out);
}

/// Columns of counts in the overview.
const COUNTS: [&str; 4] = ["hits", "failures", "first", "last"];

/// Appends the overview: a table for each section as text; as CSV one table with the columns of all sections; as JSON an
/// object with an array for each section, or an object with its section for each row.
pub(crate) fn write_overview(
    finished: Finished,
    format: Format,
    escape: Escape,
    out: &mut Vec<u8>,
) {
    let tables = finished
        .sections
        .iter()
        .map(|shown| (shown, table_of(shown)));
    match format {
        Format::Text => {
            for (shown, mut table) in tables {
                out.extend_from_slice(format!("\n{}\n\n", shown.section.title).as_bytes());
                if shown.section.name == "programs" && !finished.has_before {
                    table.rows.clear();
                    let note = "the log is not longer than a day: no program is known to be new";
                    table.notes.push(("", Value::Null, Some(note.to_owned())));
                }
                table.write(Format::Text, escape, out);
            }
        }
        Format::Csv => whole(&finished).write(Format::Csv, escape, out),
        Format::Json => {
            let mut object = Map::new();
            object.insert("new_since".to_owned(), seconds((finished.new_since_s, 0)));
            object.insert("has_before".to_owned(), finished.has_before.into());
            for (shown, table) in tables {
                let rows = table.rows.iter().map(|row| table.object(row)).collect();
                object.insert(shown.section.name.to_owned(), Value::Array(rows));
            }
            out.extend_from_slice(format!("{:#}\n", Value::Object(object)).as_bytes());
        }
        Format::Jsonl => {
            for (shown, table) in tables {
                for row in &table.rows {
                    let mut object = Map::new();
                    object.insert("section".to_owned(), shown.section.name.into());
                    if let Value::Object(rest) = table.object(row) {
                        object.extend(rest);
                    }
                    out.extend_from_slice(format!("{}\n", Value::Object(object)).as_bytes());
                }
            }
        }
    }
}

fn table_of(shown: &Shown) -> Table {
    let cells = |(values, hits): &(Values, Hits)| {
        let texts = values.iter().map(|value| text_cell(value.as_deref()));
        counts(hits).into_iter().chain(texts).collect()
    };
    Table {
        name: shown.section.name,
        columns: [&COUNTS, shown.section.columns].concat(),
        rows: shown.rows.iter().map(cells).collect(),
        notes: vec![unkept(shown.unkept_hits)],
    }
}

/// All sections in one table, whose columns are those of all.
fn whole(finished: &Finished) -> Table {
    let mut columns = [&["section"], &COUNTS[..]].concat();
    for name in overview::SECTIONS
        .iter()
        .flat_map(|section| section.columns)
    {
        if !columns.contains(name) {
            columns.push(name);
        }
    }

    let mut rows = Vec::new();
    for shown in &finished.sections {
        for (values, hits) in &shown.rows {
            let mut cells = vec![text_cell(Some(shown.section.name.as_bytes()))];
            cells.extend(counts(hits));
            for column in &columns[1 + COUNTS.len()..] {
                let own = shown.section.columns.iter().zip(values);
                let value = own
                    .filter(|(name, _)| *name == column)
                    .find_map(|(_, value)| value.as_deref());
                cells.push(text_cell(value));
            }
            rows.push(cells);
        }
    }

    Table {
        name: "overview",
        columns,
        rows,
        notes: Vec::new(),
    }
}

fn text_cell(text: Option<&[u8]>) -> Cell {
    Cell::Text(text.map(<[u8]>::to_vec))
}

fn counts(hits: &Hits) -> [Cell; 4] {
    [
        Cell::Number(hits.hits),
        Cell::Number(hits.failures),
        Cell::Time(hits.first),
        Cell::Time(hits.last),
    ]
}

fn unkept(hits: u64) -> (&'static str, Value, Option<String>) {
    let text = format!("{hits} events had values for which there was no room");
    ("unkept_hits", hits.into(), (hits > 0).then_some(text))
}

/// Date and time of the locale, in the time zone of the process.
fn date(time: Time) -> String {
    let mut text = Vec::new();
    query::time::write_date_time(time.0, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Seconds since 1970 with milliseconds, as in `log_format = JSON`.
fn seconds(time: Time) -> Value {
    let exact = time.0 as f64 + f64::from(time.1) / 1000.0;
    serde_json::Number::from_f64(exact).map_or(Value::Null, Value::Number)
}

/// A text that is not UTF-8 is an object with the exact bytes in hex, as in `log_format = JSON`.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            json!({ "text": String::from_utf8_lossy(bytes), "hex": hex })
        }
    }
}

impl Cell {
    fn json(&self) -> Value {
        match self {
            Cell::Text(None) => Value::Null,
            Cell::Text(Some(bytes)) => text(bytes),
            Cell::Number(number) => (*number).into(),
            Cell::Time(time) => seconds(*time),
        }
    }

    fn text(&self, escape: Escape) -> Vec<u8> {
        match self {
            Cell::Text(None) => b"-".to_vec(),
            Cell::Text(Some(bytes)) => {
                let mut text = Vec::new();
                escape.write(bytes, &mut text);
                text
            }
            Cell::Number(number) => number.to_string().into_bytes(),
            Cell::Time(time) => format!("{}.{:03}", date(*time), time.1).into_bytes(),
        }
    }

    /// A cell of CSV (RFC 4180): in quotes if it has to be.
    fn csv(&self) -> Vec<u8> {
        let bytes = match self {
            Cell::Text(None) => Vec::new(),
            Cell::Text(Some(bytes)) => bytes.clone(),
            Cell::Number(number) => number.to_string().into_bytes(),
            Cell::Time(time) => format!("{}.{:03}", time.0, time.1).into_bytes(),
        };
        if !bytes.iter().any(|byte| b",\"\r\n".contains(byte)) {
            return bytes;
        }

        let mut quoted = vec![b'"'];
        for byte in bytes {
            if byte == b'"' {
                quoted.push(b'"');
            }
            quoted.push(byte);
        }

        quoted.push(b'"');
        quoted
    }
}

impl Table {
    fn write(&self, format: Format, escape: Escape, out: &mut Vec<u8>) {
        match format {
            Format::Text => self.write_text(escape, out),
            Format::Csv => self.write_csv(out),
            Format::Json => {
                let mut object = Map::new();
                for (name, value, _) in &self.notes {
                    object.insert((*name).to_owned(), value.clone());
                }
                let rows = self.rows.iter().map(|row| self.object(row)).collect();
                object.insert(self.name.to_owned(), Value::Array(rows));
                out.extend_from_slice(format!("{:#}\n", Value::Object(object)).as_bytes());
            }
            Format::Jsonl => {
                for row in &self.rows {
                    out.extend_from_slice(format!("{}\n", self.object(row)).as_bytes());
                }
            }
        }
    }

    fn object(&self, row: &[Cell]) -> Value {
        let pairs = self.columns.iter().zip(row);
        let object: Map<_, _> = pairs
            .map(|(name, cell)| ((*name).to_owned(), cell.json()))
            .collect();
        Value::Object(object)
    }

    fn write_csv(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.columns.join(",").as_bytes());
        out.push(b'\n');
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(Cell::csv).collect();
            out.extend_from_slice(&cells.join(&b','));
            out.push(b'\n');
        }
    }

    fn write_text(&self, escape: Escape, out: &mut Vec<u8>) {
        let rows: Vec<Vec<Vec<u8>>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text(escape)).collect())
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].len());
            cells.chain([self.columns[column].len()]).max().unwrap_or(0)
        };

        let last = self.columns.len() - 1;
        let mut line = |cells: &mut dyn Iterator<Item = (&[u8], bool)>| {
            for (column, (cell, is_number)) in cells.enumerate() {
                let blanks = vec![b' '; width(column).saturating_sub(cell.len())];
                match (is_number, column == last) {
                    (true, _) => out.extend([&blanks[..], cell].concat()),
                    (false, false) => out.extend([cell, &blanks[..]].concat()),
                    (false, true) => out.extend_from_slice(cell),
                }
                out.extend_from_slice(if column == last { b"\n" } else { b"  " });
            }
        };

        let is_number = |name: &str| matches!(name, "hits" | "failures");
        line(
            &mut self
                .columns
                .iter()
                .map(|name| (name.as_bytes(), is_number(name))),
        );
        for row in &rows {
            let cells = self.columns.iter().zip(row);
            line(&mut cells.map(|(name, cell)| (&cell[..], is_number(name))));
        }

        if rows.is_empty() {
            out.extend_from_slice(b"nothing\n");
        }
        for note in self.notes.iter().filter_map(|(_, _, note)| note.as_ref()) {
            out.extend_from_slice(format!("({note})\n").as_bytes());
        }
    }
}
