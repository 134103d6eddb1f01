//! Logs that are searched: the first line is the text that is looked for, the rest the log.

use query::{
    Assembler, Columns, Dialect, Escape, Extra, Filter, Interpreted, Interpreter, Lines,
    MachineNames, Matcher, Sentences, TimeRange,
};

/// A field of a filter that is a text.
type Field = fn(&mut Filter) -> &mut Option<Vec<u8>>;

/// Searches for the text in every field, one after the other, in all dialects, and prints every event in all formats.
pub(crate) fn search(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (text, log) = data.split_at(end);
    for dialect in [Dialect::Own, Dialect::Compat] {
        let mut matchers: Vec<Matcher> = filters(text)
            .into_iter()
            .map(|filter| Matcher::new(filter, dialect, |_| None))
            .collect();
        let mut assembler = Assembler::new(dialect, 2, TimeRange::default());
        let mut formats = Formats::new(dialect);
        let mut converted = Vec::new();
        let mut lines = Lines::new(log, dialect.line_bytes_max());
        while let Some(line) = lines.next_line().expect("memory is read") {
            converted.clear();
            if query::json_lines(line, &mut converted) {
                for line in converted.split_inclusive(|byte| *byte == b'\n') {
                    assembler.add(line);
                }
            } else {
                assembler.add(line);
            }
            assembler.take_bad_times();
            look(&mut assembler, &mut matchers, &mut formats);
        }
        assembler.finish_ended();
        assembler.finish();
        look(&mut assembler, &mut matchers, &mut formats);
        assert!(assembler.pop().is_none());
    }
}

/// Every way to print an event.
struct Formats {
    dialect: Dialect,
    interpreters: Vec<Interpreter>,
    interpreted: Interpreted,
    columns: Columns,
}

impl Formats {
    fn new(dialect: Dialect) -> Formats {
        let modes = [Escape::Tty, Escape::ShellQuote];
        let extra = Extra {
            keys: true,
            labels: true,
            second: true,
            time: true,
        };
        Formats {
            dialect,
            interpreters: modes
                .map(|escape| Interpreter::new(dialect, escape, MachineNames::none()))
                .into(),
            interpreted: Interpreted::new(true),
            columns: Columns::new(extra),
        }
    }

    fn print(&mut self, event: &query::Event) {
        let mut out = Vec::new();
        for interpreter in &self.interpreters {
            query::write_default(event, interpreter.escape(), &mut out);
            self.interpreted.write(event, interpreter, &mut out);
            self.columns.write(event, interpreter, &mut out);
            Sentences::default().write(event, interpreter, &mut out);
        }
        query::write_raw(event, self.dialect, &mut out);
        assert!(out.ends_with(b"\n"));
    }
}

fn look(assembler: &mut Assembler, matchers: &mut [Matcher], formats: &mut Formats) {
    while let Some(event) = assembler.pop() {
        formats.print(&event);
        for matcher in &mut *matchers {
            matcher.matches(&event);
        }
        assembler.recycle(event);
    }
}

fn filters(text: &[u8]) -> Vec<Filter> {
    let text = Some(text.to_vec());
    let number = text.as_ref().map_or(0, |text| text.len() as u32);
    let fields: [Field; 10] = [
        |filter| &mut filter.file,
        |filter| &mut filter.host,
        |filter| &mut filter.terminal,
        |filter| &mut filter.exe,
        |filter| &mut filter.comm,
        |filter| &mut filter.key,
        |filter| &mut filter.vm,
        |filter| &mut filter.uuid,
        |filter| &mut filter.subject,
        |filter| &mut filter.object,
    ];
    let mut filters: Vec<Filter> = fields
        .iter()
        .map(|field| {
            let mut filter = Filter::default();
            *field(&mut filter) = text.clone();
            filter
        })
        .collect();
    filters.push(Filter {
        pid: Some(number as i32),
        ppid: Some(1),
        exit: Some(0),
        success: Some(true),
        session: Some(number),
        ..Filter::default()
    });
    filters.push(Filter {
        uid: Some(number),
        euid: Some(number),
        auid: Some(number),
        gid: Some(number),
        names: [text.clone(), text.clone(), text],
        is_any_user: true,
        ..Filter::default()
    });
    filters
}
