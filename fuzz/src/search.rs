//! Logs that are searched: the first line is the text that is looked for, the rest the log.

use query::{Assembler, Dialect, Filter, Lines, Matcher, TimeRange};

/// A field of a filter that is a text.
type Field = fn(&mut Filter) -> &mut Option<Vec<u8>>;

/// Searches for the text in every field, one after the other, in both dialects, and prints what matches.
pub(crate) fn search(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (text, log) = data.split_at(end);
    for dialect in [Dialect::Own, Dialect::Three, Dialect::Four] {
        let mut matchers: Vec<Matcher> = filters(text)
            .into_iter()
            .map(|filter| Matcher::new(filter, dialect, |_| None))
            .collect();
        let mut assembler = Assembler::new(dialect, 2, TimeRange::default());
        let mut lines = Lines::new(log, dialect.line_bytes_max());
        while let Some(line) = lines.next_line().expect("memory is read") {
            assembler.add(line);
            assembler.take_bad_times();
            look(&mut assembler, &mut matchers, dialect);
        }
        assembler.finish();
        look(&mut assembler, &mut matchers, dialect);
        assert!(assembler.pop().is_none());
    }
}

fn look(assembler: &mut Assembler, matchers: &mut [Matcher], dialect: Dialect) {
    let mut out = Vec::new();
    while let Some(event) = assembler.pop() {
        for matcher in &mut *matchers {
            if matcher.matches(&event) {
                query::write_raw(&event, dialect, &mut out);
                query::write_default(&event, &mut out);
            }
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
