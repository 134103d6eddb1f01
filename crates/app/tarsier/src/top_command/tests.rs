//! Tests of the model and of the screen.

use super::draw::{draw, Around};
use super::events::View;
use super::model::{Action, Model};
use query::{Assembler, Dialect};
use ratatui::backend::TestBackend;
use ratatui::Terminal;

fn call(number: u64, user: &str, key: &str, exe: &str, file: &str, good: bool) -> String {
    let stamp = format!("msg=audit({}.000:{number})", 1_795_229_600 + number);
    let success = if good { "yes exit=0" } else { "no exit=-13" };
    format!(
        "type=SYSCALL {stamp}: arch=c000003e syscall=257 success={success} a0=1 a1=2 a2=0 a3=0 items=1 \
         ppid=1 pid=70 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 \
         comm=\"x\" exe=\"{exe}\" key=\"{key}\"\u{1d}AUID=\"{user}\" UNIT=\"ssh.service\"\n\
         type=PATH {stamp}: item=0 name=\"{file}\" inode=1 nametype=NORMAL\n"
    )
}

fn model(log: &str) -> Model {
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let mut model = Model::new(1000);
    for line in log.lines() {
        assembler.add(line.as_bytes());
    }
    assembler.finish();
    super::take_complete(&mut assembler, |event| model.events.add(event));
    let last_ms = model.events.last_ms;
    model.refresh(last_ms);
    model
}

fn example() -> Model {
    let mut log = String::new();
    for number in 0..20 {
        log += &call(number, "alice", "web", "/bin/cat", "/srv/a", true);
    }
    for number in 20..25 {
        log += &call(number, "bob", "etc", "/bin/vi", "/etc/shadow", false);
    }
    log += &call(25, "alice", "etc", "/bin/ls", "/etc", true);
    model(&log)
}

fn names(model: &Model) -> Vec<String> {
    let label = |line: &super::model::Line| model.events.label(line.label).trim_start().to_owned();
    model.lines.iter().map(label).collect()
}

fn screen(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let around = Around {
        log: "/var/log/audit/audit.log",
        daemon: "daemon: 3 rules, 26 events recorded, 0 lost",
        has_losses: false,
    };
    terminal
        .draw(|frame| draw(frame, model, &around))
        .expect("drawn");
    terminal.backend().to_string()
}

#[test]
fn enter_goes_down_to_the_events_and_back_comes_up() {
    let mut model = example();
    assert_eq!(names(&model), ["web", "etc"]);
    model.act(Action::Down(1));
    model.act(Action::Enter);
    assert_eq!((model.view(), model.shown), (View::User, 6));
    assert_eq!(names(&model), ["bob", "alice"]);
    model.act(Action::Enter);
    assert_eq!(names(&model), ["70 /bin/vi"]);
    model.act(Action::Enter);
    assert_eq!(names(&model), ["/etc/shadow"]);
    model.act(Action::Enter);
    assert_eq!((model.view(), model.shown), (View::Event, 5));
    for _ in 0..9 {
        model.act(Action::Back);
    }
    assert_eq!(
        (model.view(), model.shown, model.selected()),
        (View::Key, 26, 1)
    );
}

#[test]
fn enter_on_an_event_shows_its_records() {
    let mut model = example();
    model.act(Action::View(View::Event));
    model.act(Action::Down(1));
    model.act(Action::Enter);
    let text = screen(&model, 80, 24);
    for words in [
        "2026-11-21 02:53:44 UTC, event 24",
        "type=SYSCALL",
        "/etc/shadow",
        "AUID=\"bob\"",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }

    model.act(Action::Last);
    assert!(!screen(&model, 80, 24).contains("type=SYSCALL"), "scrolled");
    model.act(Action::Back);
    assert_eq!((model.view(), model.selected()), (View::Event, 1));
    let text = screen(&model, 80, 24);
    assert!(text.contains("11-21 02:53:44"), "{text}");
    model.act(Action::View(View::Key));
    let text = screen(&model, 80, 24);
    assert!(text.contains("2026-11-21 02:53:45"), "{text}");
}

#[test]
fn sorting_filters_and_failures_narrow_the_table() {
    let mut model = example();
    model.act(Action::Sort);
    assert_eq!(names(&model), ["etc", "web"], "by failures");
    assert_eq!((model.lines[0].events, model.lines[0].failed), (6, 5));
    model.act(Action::FailedOnly);
    assert_eq!(names(&model), ["etc"]);
    model.act(Action::FailedOnly);
    model.act(Action::Filter);
    for character in "we".chars() {
        model.act(Action::Type(character));
    }
    model.act(Action::Accept);
    assert_eq!(names(&model), ["web"]);
    model.act(Action::Back);
    assert_eq!(names(&model).len(), 2);
}

#[test]
fn another_view_keeps_what_was_chosen() {
    let mut model = example();
    model.act(Action::Enter);
    model.act(Action::View(View::File));
    assert_eq!(names(&model), ["/srv/a"]);
    model.act(Action::NextView);
    assert_eq!((model.view(), model.shown), (View::Event, 20));
}

#[test]
fn rates_are_of_the_last_ten_seconds() {
    let model = example();
    let recent: Vec<_> = model.lines.iter().map(|line| line.recent).collect();
    // Seconds 16 to 25, of which web has 16 to 19.
    assert_eq!(recent, [4, 6]);
}

#[test]
fn memory_is_bounded() {
    let mut log = String::new();
    for number in 0..5000 {
        log += &call(
            number,
            "alice",
            "web",
            "/bin/cat",
            &format!("/{number}"),
            true,
        );
    }
    let model = model(&log);
    assert_eq!(model.events.seen, 5000);
    assert!(
        (500..=1000).contains(&model.events.kept()),
        "{}",
        model.events.kept()
    );
    assert!(model.events.labels() <= 4001, "{}", model.events.labels());
    assert_eq!(
        (names(&model), model.shown),
        (vec!["web".to_owned()], model.events.kept() as u64)
    );
}

#[test]
fn a_screen_of_80_by_24_shows_what_matters() {
    let mut model = example();
    let text = screen(&model, 80, 24);
    for words in [
        "26 events, 5 failed",
        "0 lost",
        "1 Key",
        "events▼",
        "web",
        "etc",
        "q quit",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    model.act(Action::Enter);
    model.act(Action::View(View::Event));
    let text = screen(&model, 80, 24);
    for words in ["key=web", "openat", "alice", "/bin/cat", "/srv/a"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    model.act(Action::Help);
    assert!(screen(&model, 80, 24).contains("go down"));
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let mut model = example();
    for view in [View::Key, View::Event] {
        model.act(Action::View(view));
        model.act(Action::Last);
        for (width, height) in [(1, 1), (3, 40), (200, 2), (20, 5)] {
            screen(&model, width, height);
            model.shows_help = true;
            screen(&model, width, height);
            model.shows_help = false;
        }
    }
}

#[test]
fn control_characters_of_a_log_do_not_reach_the_terminal() {
    let log = call(1, "alice", "\u{1b}[2J", "/bin/\u{7}x", "/\u{9b}31m", true);
    let mut model = model(&log);
    for view in super::events::VIEWS {
        model.act(Action::View(view));
        let text = screen(&model, 80, 24);
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }
}
