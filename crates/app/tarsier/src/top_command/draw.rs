//! The screen of `tarsier top`.

use super::events::{View, VIEWS};
use super::model::{Model, RecordsShown, Sort, RATE_MS};
use journal::seal::time_text;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use ratatui::Frame;

const HELP: &[&str] = &[
    "Each line is a key, user, unit, process or file with its events.",
    "",
    "Enter        go down: key > user > process > file > events > records",
    "Backspace    back (Esc and Left, too)",
    "1 to 6, Tab  another view of the same events",
    "s            sort by events, failed, rate, last, name",
    "f            only events that failed",
    "/            only names that contain a text; Esc drops it",
    "Up Down PgUp PgDn Home End",
    "p            pause and go on",
    "q            quit",
    "",
    "Rate: events per second in the last ten seconds.",
    "The newest 100,000 events are kept.",
];

/// Facts shown beside the events.
pub(super) struct Around<'a> {
    /// Path of the log.
    pub(super) log: &'a str,
    /// The daemon's statement about its losses.
    pub(super) daemon: &'a str,
    /// Whether the daemon lost events.
    pub(super) has_losses: bool,
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, around: &Around<'_>) {
    let path = path_line(model);
    let [top, second, tabs, way, table, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(u16::from(!path.is_empty())),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());

    frame.render_widget(title(model, around), top);
    let style = if around.has_losses {
        Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
    } else {
        Style::new().fg(Color::DarkGray)
    };
    frame.render_widget(Paragraph::new(Span::styled(around.daemon, style)), second);
    frame.render_widget(Paragraph::new(tabs_line(model)), tabs);

    frame.render_widget(Paragraph::new(path), way);
    match (&model.records, model.view()) {
        (Some(shown), _) => records(frame, table, shown),
        (None, View::Event) => events(frame, table, model),
        (None, view) => lines(frame, table, model, view),
    }

    frame.render_widget(Paragraph::new(footer(model)), bottom);
    if model.shows_help {
        help(frame);
    }
}

fn title(model: &Model, around: &Around<'_>) -> Paragraph<'static> {
    let events = &model.events;
    let mut text = format!(
        "tarsier top  {}  {} events, {} failed",
        around.log, events.seen, events.failed
    );
    if events.seen > events.kept() as u64 {
        text.push_str(&format!(", newest {}", events.kept()));
    }

    if model.is_paused {
        text.push_str("  PAUSED");
    }
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
}

/// Labels that Enter chose on the way here.
fn path_line(model: &Model) -> String {
    let step = |(view, label): (View, &str)| {
        let label = cut(label.trim_start(), 30);
        format!("{}={label}", view.name().to_lowercase())
    };
    model.path().map(step).collect::<Vec<_>>().join(" > ")
}

fn tabs_line(model: &Model) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, view) in VIEWS.iter().enumerate() {
        let style = if *view == model.view() {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().fg(Color::Cyan)
        };
        spans.push(Span::styled(
            format!("{} {}", number + 1, view.name()),
            style,
        ));
        spans.push(Span::raw(" "));
    }

    if model.failed_only {
        spans.push(Span::styled("failed only ", Style::new().fg(Color::Red)));
    }
    if !model.filter.is_empty() && !model.is_typing {
        spans.push(Span::raw(format!("/{}", model.filter)));
    }

    Line::from(spans)
}

fn footer(model: &Model) -> Line<'static> {
    if model.is_typing {
        Line::from(format!(
            "filter: {}_   Enter keeps it, Esc drops it",
            model.filter
        ))
    } else {
        Line::from(
            "Enter down  Esc up  Tab view  s sort  f failed  / text  p pause  h help  q quit",
        )
        .style(Style::new().fg(Color::DarkGray))
    }
}

fn lines(frame: &mut Frame<'_>, area: Rect, model: &Model, view: View) {
    let mark = |sort: Sort| if model.sort == sort { "▼" } else { "" };
    let header = Row::new([
        right(format!("events{}", mark(Sort::Events)), Style::new()),
        right(format!("failed{}", mark(Sort::Failed)), Style::new()),
        right(format!("rate{}", mark(Sort::Rate)), Style::new()),
        Cell::from(format!("last{}", mark(Sort::Last))),
        Cell::from(format!(
            "{}{}",
            view.name().to_lowercase(),
            mark(Sort::Name)
        )),
    ])
    .style(Style::new().add_modifier(Modifier::UNDERLINED));

    let window = window(model.selected(), area.height, model.lines.len());
    let rows = model.lines[window.clone()].iter().map(|line| {
        let failed = match line.failed {
            0 => right("-".to_owned(), Style::new().fg(Color::DarkGray)),
            failed => right(failed.to_string(), Style::new().fg(Color::Red)),
        };
        let rate = line.recent as f64 * 1000.0 / RATE_MS as f64;
        Row::new([
            right(line.events.to_string(), Style::new()),
            failed,
            right(format!("{rate:.1}"), Style::new()),
            Cell::from(date_time(line.last_ms)),
            Cell::from(model.events.label(line.label)),
        ])
    });

    let widths = [
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(19),
        Constraint::Min(20),
    ];
    let table = Table::new(rows, widths)
        .header(header)
        .row_highlight_style(highlight());
    let mut state = TableState::new().with_selected(model.selected().saturating_sub(window.start));
    frame.render_stateful_widget(table, area, &mut state);
}

fn events(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let header = Row::new(["time", "serial", "call", "user", "process", "file"])
        .style(Style::new().add_modifier(Modifier::UNDERLINED));
    let all = usize::try_from(model.shown).unwrap_or(usize::MAX);
    let window = window(model.selected(), area.height, all);
    let first = |labels: &[u32]| {
        labels
            .first()
            .map_or("", |label| model.events.label(*label))
    };

    let items = model.newest().skip(window.start).take(window.len());
    let rows = items.map(|item| {
        let style = if item.is_failure {
            Style::new().fg(Color::Red)
        } else {
            Style::new()
        };
        Row::new([
            day_time(item.time_ms),
            item.serial.to_string(),
            model.events.label(item.what).to_owned(),
            first(item.labels(View::User)).to_owned(),
            first(item.labels(View::Process)).trim_start().to_owned(),
            first(item.labels(View::File)).to_owned(),
        ])
        .style(style)
    });

    let widths = [
        Constraint::Length(14),
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Length(9),
        Constraint::Percentage(28),
        Constraint::Min(14),
    ];

    let table = Table::new(rows, widths)
        .header(header)
        .row_highlight_style(highlight());
    let mut state = TableState::new().with_selected(model.selected().saturating_sub(window.start));
    frame.render_stateful_widget(table, area, &mut state);
}

/// The lines that are drawn, so that the selected one is among them.
fn window(selected: usize, height: u16, all: usize) -> std::ops::Range<usize> {
    let height = usize::from(height.saturating_sub(1)).max(1);
    let start = (selected + 1).saturating_sub(height).min(all);
    start..(start + height).min(all)
}

fn highlight() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn right(text: String, style: Style) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned()).style(style)
}

/// The records of an event, in place of a table.
fn records(frame: &mut Frame<'_>, area: Rect, records: &RecordsShown) {
    let title = format!(
        "{} UTC, event {}",
        date_time(records.time_ms),
        records.serial
    );
    let title = Line::from(title).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let shown = records.lines.iter().skip(records.top);
    let text: Vec<Line<'_>> = std::iter::once(title)
        .chain(shown.map(|line| Line::from(line.as_str())))
        .collect();
    // RecordsShown are longer than any screen is wide.
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
}

/// Date and time in UTC, to the second.
fn date_time(time_ms: u64) -> String {
    let text = time_text(time_ms - time_ms % 1000);
    text.get(..19).unwrap_or("").replace('T', " ")
}

/// Month, day and time in UTC.
fn day_time(time_ms: u64) -> String {
    date_time(time_ms).get(5..).unwrap_or("").to_owned()
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() > most {
        text.chars().take(most - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

fn help(frame: &mut Frame<'_>) {
    let whole = frame.area();
    let width = whole.width.min(68);
    let height = whole.height.min(HELP.len() as u16 + 2);
    let area = Rect {
        x: (whole.width - width) / 2,
        y: (whole.height - height) / 2,
        width,
        height,
    };

    frame.render_widget(Clear, area);
    let text: Vec<Line<'_>> = HELP.iter().map(|line| Line::from(*line)).collect();
    let block = ratatui::widgets::Block::bordered().title(" tarsier top ");
    frame.render_widget(Paragraph::new(text).block(block), area);
}
