//! Tests of the daemon's side with helpers that fail.

use crate::lookup::budget::Limit;
use crate::lookup::client::{Client, Refused};
use crate::lookup::fake::{Act, Fakes, Side, PATIENCE};
use crate::lookup::message::{Asker, Content, Question, Request};
use crate::lookup::names::Names;
use record::record::Inode;
use record::NameAnswer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far more than a thread needs to be scheduled.
const SLACK: Duration = Duration::from_millis(300);

struct Asked {
    client: Client,
    started: Receiver<u32>,
    ended: Receiver<()>,
    may_end: Arc<AtomicBool>,
    is_runnable: Arc<AtomicBool>,
    is_stopped: Arc<AtomicBool>,
}

/// A client whose helpers do this, one after the other; later ones answer.
fn with(acts: Vec<Act>) -> Asked {
    let ((start, started), (end, ended)) = (channel(), channel());
    let fakes = Fakes::new(acts, start, end);
    let (may_end, is_runnable) = (fakes.may_end(), fakes.is_runnable());
    let is_stopped = fakes.is_stopped();
    Asked {
        client: Client::new(Box::new(fakes)),
        started,
        ended,
        may_end,
        is_runnable,
        is_stopped,
    }
}

impl Asked {
    /// The inode of the root directory.
    fn root(&mut self) -> Option<Inode> {
        self.root_within(0).ok().flatten()
    }

    /// The same, within a time, unless that is 0.
    fn root_within(&mut self, limit_us: u32) -> Result<Option<Inode>, Refused> {
        let question = Question::Inode {
            path: b"/",
            follow: true,
        };
        let asker = Asker {
            limit_us,
            ..Asker::default()
        };
        self.client.ask(question, asker, |content| match content {
            Content::Inode(inode) => Some(inode),
            _ => None,
        })
    }

    fn starts(&self) -> usize {
        self.started.try_iter().count()
    }
}

/// Takes a question and does something instead of answering.
fn instead(act: impl FnOnce(&Side, u32) + Send + 'static) -> Act {
    Box::new(move |side: &Side| {
        if let Some(number) = side.number() {
            act(side, number);
        }
    })
}

fn hangs_at(dev: u32) -> Act {
    instead(move |side, number| {
        side.reply(number, Content::Waits(dev));
        side.hang();
    })
}

#[test]
fn a_helper_answers_and_is_kept() {
    let mut asked = with(vec![]);
    let root = std::fs::metadata("/").expect("the root directory");
    for _ in 0..3 {
        let found = asked.root().expect("an answer");
        assert_eq!(found.ino, std::os::unix::fs::MetadataExt::ino(&root));
    }
    assert_eq!(asked.starts(), 1);
    assert_eq!(asked.client.counts().unanswered, 0);
}

#[test]
fn a_helper_that_fails_costs_one_answer_and_is_replaced() {
    let inode = Inode::default();
    let acts: [(&str, Act); 8] = [
        ("dies", instead(|_, _| {})),
        ("garbage", instead(|side, _| side.send(b"garbage"))),
        (
            "another number",
            instead(move |side, number| {
                side.reply(number.wrapping_add(1), Content::Inode(inode));
                side.hang();
            }),
        ),
        (
            "an earlier number",
            instead(move |side, number| {
                side.reply(number.wrapping_sub(1), Content::Inode(inode));
                side.hang();
            }),
        ),
        (
            "another kind",
            instead(|side, number| side.reply(number, Content::Number(1))),
        ),
        ("too long", instead(|side, _| side.send(&[3; 100_000]))),
        ("hangs", hangs_at(3)),
        (
            "hangs at the second of two",
            instead(|side, number| {
                side.reply(number, Content::Waits(3));
                side.reply(number, Content::Waits(4));
                side.hang();
            }),
        ),
    ];
    for (name, act) in acts {
        let mut asked = with(vec![act]);
        let start = Instant::now();
        assert_eq!(asked.root(), None, "{name}");
        assert!(start.elapsed() < PATIENCE + SLACK, "{name}");
        assert!(asked.root().is_some(), "{name}");
        assert_eq!(asked.starts(), 2, "{name}");
        let counts = asked.client.counts();
        assert_eq!((counts.unanswered, counts.replaced), (1, 1), "{name}");
    }
}

#[test]
fn a_helper_without_a_processor_has_more_time_but_not_without_end() {
    let late = instead(|side, number| {
        std::thread::sleep(PATIENCE + SLACK);
        side.reply(number, Content::Inode(Inode::default()));
        side.serve();
    });
    let mut asked = with(vec![late]);
    assert_eq!(asked.root(), Some(Inode::default()));
    let mut asked = with(vec![instead(|side, _| side.hang())]);
    let start = Instant::now();
    assert_eq!(asked.root(), None);
    assert!(start.elapsed() < 5 * PATIENCE + SLACK);
    assert!(asked.root().is_some());
}

#[test]
fn a_helper_that_waits_for_a_processor_beside_a_file_system_is_waited_for() {
    let starved = instead(|side, number| {
        side.reply(number, Content::Waits(3));
        std::thread::sleep(3 * PATIENCE);
        side.reply(number, Content::Inode(Inode::default()));
        side.serve();
    });
    let mut asked = with(vec![starved]);
    asked.is_runnable.store(true, Ordering::Relaxed);
    assert_eq!(asked.root(), Some(Inode::default()));
    let counts = asked.client.counts();
    assert_eq!((counts.unanswered, counts.replaced), (0, 0));
}

#[test]
fn a_helper_that_is_late_costs_the_time_of_an_event_once() {
    let slow = instead(|side, number| {
        std::thread::sleep(PATIENCE);
        side.reply(number, Content::Inode(Inode::default()));
        side.serve();
    });
    let mut asked = with(vec![slow]);
    let start = Instant::now();
    assert_eq!(asked.root_within(20_000), Err(Refused));
    for _ in 0..1000 {
        assert_eq!(asked.root_within(20_000), Err(Refused));
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    std::thread::sleep(PATIENCE);
    let root = asked.root_within(1_000_000).expect("it answers again");
    assert_ne!(root, Some(Inode::default()), "not the late answer");
    let counts = asked.client.counts();
    assert_eq!((counts.unanswered, counts.replaced), (1001, 0));
}

#[test]
fn a_helper_that_hangs_is_replaced_although_nobody_waits_for_it() {
    let mut asked = with(vec![hangs_at(3)]);
    let start = Instant::now();
    while asked.root_within(20_000).is_err() {
        let elapsed = start.elapsed();
        assert!(elapsed < PATIENCE + 3 * SLACK, "{elapsed:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(start.elapsed() >= PATIENCE);
    assert_eq!((asked.starts(), asked.client.counts().replaced), (2, 1));
}

#[test]
fn a_helper_that_is_stopped_is_replaced_at_once() {
    let mut asked = with(vec![instead(|side, _| side.hang())]);
    asked.is_stopped.store(true, Ordering::Relaxed);
    assert_eq!(asked.root_within(20_000), Err(Refused));
    assert!(asked.root_within(1_000_000).is_ok());
    assert_eq!((asked.starts(), asked.client.counts().replaced), (2, 1));
}

#[test]
fn what_is_not_known_is_not_missing() {
    let acts = [Content::Missing, Content::NotNow, Content::Denied];
    for (content, expected) in acts.into_iter().zip([Ok(None), Err(Refused), Err(Refused)]) {
        let answers = instead(move |side, number| side.reply(number, content));
        assert_eq!(with(vec![answers]).root_within(0), expected, "{expected:?}");
    }
}

#[test]
fn a_late_answer_is_not_taken_for_that_to_the_next_question() {
    let late = instead(|side, number| {
        side.reply(number, Content::Waits(1));
        std::thread::sleep(PATIENCE + SLACK);
        side.reply(number, Content::Missing);
    });
    let mut asked = with(vec![late]);
    assert_eq!(asked.root(), None);
    for _ in 0..200 {
        assert!(asked.root().is_some());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_helper_that_ended_between_questions_costs_no_answer() {
    let one = instead(|side, number| side.reply(number, Content::Inode(Inode::default())));
    let mut asked = with(vec![one]);
    assert!(asked.root().is_some());
    asked.ended.recv().expect("it ends");
    assert!(asked.root().is_some());
    assert_eq!(asked.client.counts().unanswered, 0);
}

#[test]
fn the_next_helper_avoids_the_file_system_that_did_not_answer() {
    let (sender, told) = channel();
    let next: Act = Box::new(move |side| {
        let first = side.next().expect("a message");
        sender.send(first).expect("the test waits");
        side.serve();
    });
    let mut asked = with(vec![hangs_at(77), next]);
    assert_eq!(asked.root(), None);
    assert!(asked.root().is_some());
    let first = told.recv().expect("the first message");
    match Request::parse(&first) {
        Ok(Request::Avoid { dev: 77, ms }) => assert!(ms > 9_000, "{ms}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_system_is_avoided_while_a_killed_helper_hangs_there() {
    let (sender, told) = channel();
    let next: Act = Box::new(move |side| {
        while let Some(message) = side.next() {
            match Request::parse(&message) {
                Ok(Request::Avoid { dev, .. }) => sender.send(dev).expect("the test waits"),
                Ok(Request::Ask { number, .. }) => side.reply(number, Content::Missing),
                Err(_) => panic!("not a request"),
            }
        }
    });
    let mut asked = with(vec![hangs_at(77), next]);
    asked.may_end.store(false, Ordering::Relaxed);
    assert_eq!(asked.root(), None);
    assert_eq!(asked.root(), None);
    assert_eq!(told.recv(), Ok(77));
    asked.client.tend();
    assert_eq!(asked.client.counts().stuck, 1);
    assert!(told.try_recv().is_err());
    asked.client.age(Duration::from_secs(8));
    asked.client.tend();
    assert_eq!(told.recv(), Ok(77));
    asked.may_end.store(true, Ordering::Relaxed);
    asked.client.tend();
    assert_eq!(asked.client.counts().stuck, 0);
}

#[test]
fn after_three_failures_nothing_is_waited_for_and_after_six_nothing_asked() {
    let (sender, may_wait) = channel();
    let acts = (0..20).map(|dev| -> Act {
        let sender = sender.clone();
        Box::new(move |side| loop {
            let Some(message) = side.next() else { return };
            let Ok(Request::Ask { may_wait, .. }) = Request::parse(&message) else {
                continue;
            };
            let _ = sender.send((dev, may_wait));
            return;
        })
    });
    let mut asked = with(acts.collect());
    for _ in 0..20 {
        assert_eq!(asked.root(), None);
    }
    let seen: Vec<(u32, bool)> = may_wait.try_iter().collect();
    let expected: Vec<(u32, bool)> = (0..6).map(|dev| (dev, dev < 3)).collect();
    assert_eq!(seen, expected);
    assert_eq!(asked.client.counts().unanswered, 20);
    asked.client.age(Duration::from_secs(11));
    assert_eq!(asked.root(), None);
    assert_eq!(may_wait.try_recv(), Ok((6, true)));
}

#[test]
fn killed_helpers_that_hang_are_not_replaced_without_end() {
    let acts = (0..30).map(|_| instead(|_, _| {})).collect();
    let mut asked = with(acts);
    asked.may_end.store(false, Ordering::Relaxed);
    for _ in 0..30 {
        asked.client.age(Duration::from_secs(11));
        assert_eq!(asked.root(), None);
    }
    assert_eq!(asked.client.counts().stuck, 16);
    assert_eq!(asked.starts(), 16);
    asked.may_end.store(true, Ordering::Relaxed);
    asked.client.age(Duration::from_secs(11));
    assert_eq!(asked.root(), None);
    assert_eq!(asked.starts(), 1);
}

#[test]
fn the_process_of_each_helper_is_told() {
    let (sender, told) = channel();
    let mut asked = with(vec![instead(|_, _| {})]);
    asked.client.follow(Box::new(move |pid| {
        let _ = sender.send(pid);
    }));
    assert_eq!(asked.root(), None);
    assert!(asked.root().is_some());
    let seen: Vec<Option<u32>> = told.try_iter().collect();
    assert_eq!(seen, [None, Some(1), None, Some(2)]);
}

#[test]
fn a_helper_that_is_renewed_has_not_failed() {
    let mut asked = with(vec![]);
    assert!(asked.root().is_some());
    asked.client.renew().expect("another helper");
    assert_eq!((asked.starts(), asked.client.pid()), (2, Some(2)));
    assert!(asked.root().is_some());
    assert_eq!(asked.starts(), 0);
    let counts = asked.client.counts();
    assert_eq!(
        (counts.replaced, counts.unanswered, counts.stuck),
        (0, 0, 0)
    );
}

fn names(acts: Vec<Act>) -> Names {
    Names::new(Box::new(Fakes::new(acts, channel().0, channel().0)))
}

#[test]
fn names_are_those_of_the_databases() {
    let mut names = names(vec![]);
    assert_eq!(
        names.ask(false, 0, Limit::None),
        NameAnswer::Name("root".to_owned())
    );
    assert_eq!(
        names.ask(true, 0, Limit::None),
        NameAnswer::Name("root".to_owned())
    );
    assert_eq!(
        names.ask(false, 4_000_000_000, Limit::None),
        NameAnswer::Nameless
    );
    assert_eq!(names.unanswered, 0);
}

#[test]
fn a_slow_directory_costs_one_deadline_and_its_answer_is_kept() {
    let (go, wait) = channel::<()>();
    let (sent, is_sent) = channel::<()>();
    let slow: Act = Box::new(move |side| {
        let number = side.number().expect("a question");
        let _ = wait.recv();
        side.reply(number, Content::Bytes(b"late".into()));
        let _ = sent.send(());
        side.serve();
    });
    let mut names = names(vec![slow]);
    let start = Instant::now();
    for id in 0..1000 {
        assert_eq!(names.ask(false, 5000 + id, Limit::None), NameAnswer::NotNow);
    }
    assert!(start.elapsed() < PATIENCE + SLACK);
    assert_eq!(names.unanswered, 1000);
    drop(go);
    is_sent.recv().expect("it answers");
    assert_eq!(
        names.ask(false, 0, Limit::None),
        NameAnswer::Name("root".to_owned())
    );
    assert_eq!(
        names.ask(false, 5000, Limit::None),
        NameAnswer::Name("late".to_owned())
    );
    assert_eq!(names.replaced, 0);
}

#[test]
fn a_directory_that_never_answers_is_asked_again_after_a_while() {
    let mut names = names(vec![instead(|side, _| side.hang())]);
    assert_eq!(names.ask(false, 7, Limit::None), NameAnswer::NotNow);
    names.age(Duration::from_secs(11));
    assert_eq!(names.ask(false, 7, Limit::None), NameAnswer::NotNow);
    assert_eq!(names.replaced, 1);
    assert_eq!(names.ask(false, 0, Limit::None), NameAnswer::NotNow);
    names.age(Duration::from_secs(11));
    assert_eq!(
        names.ask(false, 0, Limit::None),
        NameAnswer::Name("root".to_owned())
    );
}

#[test]
fn a_name_helper_that_answers_wrongly_is_replaced() {
    let acts: Vec<Act> = vec![
        instead(|side, _| side.send(b"garbage")),
        instead(|side, number| {
            side.reply(number.wrapping_add(1), Content::Bytes(b"mallory".into()))
        }),
        instead(|side, number| side.reply(number, Content::Number(3))),
    ];
    let mut names = names(acts);
    for failed in 1..=3 {
        assert_eq!(names.ask(false, 0, Limit::None), NameAnswer::NotNow);
        assert_eq!(names.replaced, failed);
        names.age(Duration::from_secs(11));
    }
    assert_eq!(
        names.ask(false, 0, Limit::None),
        NameAnswer::Name("root".to_owned())
    );
}

#[test]
fn more_ids_than_can_be_asked_for_get_no_names() {
    let (sender, asked) = channel();
    let counting: Act = Box::new(move |side| {
        while let Some(number) = side.number() {
            let _ = sender.send(());
            side.reply(number, Content::Missing);
        }
    });
    let mut names = names(vec![counting]);
    let start = Instant::now();
    for id in 0..20_000 {
        names.ask(false, id, Limit::None);
    }
    let most = 4096 + start.elapsed().as_millis() as usize;
    let count = asked.try_iter().count();
    assert!((4096..=most).contains(&count), "{count} of {most}");
    assert_eq!(names.unanswered as usize, 20_000 - count);
}
