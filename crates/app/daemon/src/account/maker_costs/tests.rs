//! Counts of makers, compared with exact ones.

use super::table::Table;
use super::*;

const MAKERS: u64 = 4;

/// A generator of numbers, so that streams are the same in each run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn event(bytes: u64) -> Sums {
    Sums {
        events: 1,
        bytes,
        spent_ns: 3 * bytes,
    }
}

fn name(id: u64) -> Arc<[u8]> {
    id.to_string().as_bytes().into()
}

/// Checks what a table promises against the exact counts of a stream.
fn keeps_its_promises(what: &str, stream: impl Iterator<Item = (u64, u64)>) {
    let mut table = Table::default();
    let mut exact: HashMap<u64, Sums> = HashMap::new();
    let mut all = 0;
    for (id, bytes) in stream {
        table.add(id, &name(id), event(bytes));
        *exact.entry(id).or_default() += event(bytes);
        all += bytes;
    }
    let unseen = table.unseen_bytes_max();
    assert!(table.rows().len() <= NAMES_MAX, "{what}");
    assert!(
        unseen <= all / NAMES_MAX as u64,
        "{what}: {unseen} of {all}"
    );
    let mut rows: HashMap<u64, &Row> = HashMap::new();
    for row in table.rows() {
        assert!(
            rows.insert(row.id, row).is_none(),
            "{what}: {} twice",
            row.id
        );
        assert_eq!(row.name, name(row.id), "{what}");
    }
    for (id, exact) in &exact {
        let Some(row) = rows.get(id) else {
            assert!(
                exact.bytes <= unseen,
                "{what}: {id} is not there: {exact:?}"
            );
            continue;
        };
        assert!(row.sums.bytes <= exact.bytes, "{what}: {id}");
        assert!(row.sums.events <= exact.events, "{what}: {id}");
        assert!(
            exact.bytes <= row.sums.bytes + row.missing_bytes_max,
            "{what}: {id}"
        );
        if exact.bytes == row.sums.bytes {
            assert_eq!(row.sums, *exact, "{what}: {id}");
        }
    }
}

#[test]
fn a_table_is_exact_until_it_is_full() {
    let mut numbers = Numbers(1);
    let stream = (0..50_000).map(|_| (numbers.below(NAMES_MAX as u64), 1 + numbers.below(5000)));
    let mut table = Table::default();
    let mut exact: HashMap<u64, Sums> = HashMap::new();
    for (id, bytes) in stream {
        table.add(id, &name(id), event(bytes));
        *exact.entry(id).or_default() += event(bytes);
    }
    assert_eq!((table.replaced, table.unseen_bytes_max()), (0, 0));
    assert_eq!(table.rows().len(), exact.len());
    for row in table.rows() {
        assert_eq!((row.sums, row.missing_bytes_max), (exact[&row.id], 0));
    }
}

#[test]
fn whoever_has_more_than_a_names_share_is_in_the_table_whatever_the_stream() {
    for seed in 0..20 {
        let mut numbers = Numbers(seed);
        let names = 1 + numbers.below(10 * NAMES_MAX as u64);
        let random = (0..20_000).map(|_| (numbers.below(names), 1 + numbers.below(3000)));
        keeps_its_promises("random", random.collect::<Vec<_>>().into_iter());
        let mut numbers = Numbers(seed);
        let skewed = (0..20_000).map(|_| {
            let limit = 1 + numbers.below(names);
            (numbers.below(limit), 1 + numbers.below(3000))
        });
        keeps_its_promises("skewed", skewed.collect::<Vec<_>>().into_iter());
    }
    // Names come again just after they were replaced.
    let round = (0..100_000).map(|n| (n % (NAMES_MAX as u64 + 1), 1));
    keeps_its_promises("in turn", round);
    // Sizes grow, so that each new name is larger than all before.
    keeps_its_promises("growing", (0..20_000).map(|n| (n, n + 1)));
    keeps_its_promises("shrinking", (0..20_000).map(|n| (n, 20_000 - n)));
    // The table is full of old names with many bytes, and others come and go between the events of one.
    let old = (0..NAMES_MAX as u64).map(|n| (n, if n < 1000 { 1_000_000 } else { 1 }));
    let hidden = (0..50_000).map(|n| {
        if n % 30 == 0 {
            (5000, 900)
        } else {
            (6000 + n, 900)
        }
    });
    keeps_its_promises("hidden among new names", old.chain(hidden));
}

#[test]
fn what_two_windows_tell_together_holds_for_the_events_of_both() {
    for seed in 0..10 {
        let mut numbers = Numbers(seed);
        let windows = [Period::new(), Period::new()].map(|mut window| {
            let (from, names) = (numbers.below(2000), 1 + numbers.below(4000));
            let events: Vec<(u64, u64)> = (0..10_000)
                .map(|_| (from + numbers.below(names), 1 + numbers.below(3000)))
                .collect();
            for (id, bytes) in &events {
                let known = || Name::Known(*id, name(*id));
                window.add(
                    &[known(), Name::None, known(), Name::Unknown],
                    event(*bytes),
                );
            }
            (window, events)
        });
        let mut exact: HashMap<u64, Sums> = HashMap::new();
        let events = windows.iter().flat_map(|(_, events)| events);
        events.for_each(|(id, bytes)| *exact.entry(*id).or_default() += event(*bytes));
        let mut total = Sums::default();
        exact.values().for_each(|sums| total += *sums);
        let [first, second] = &windows;
        let periods = [&first.0, &second.0];
        let all = found(&periods, MakerKind::Container);
        assert_eq!((all.nameless, all.total), (total, total));
        assert_eq!(found(&periods, MakerKind::Exe).unknown, total);
        let all = found(&periods, MakerKind::Unit);
        let rows: HashMap<u64, &Row> = all.named.iter().map(|row| (row.id, row)).collect();
        assert_eq!(rows.len(), all.named.len(), "each name has one row");
        for (id, exact) in &exact {
            let (bytes, limit) = match rows.get(id) {
                Some(row) => (row.sums.bytes, row.sums.bytes + row.missing_bytes_max),
                None => (0, all.unseen_bytes_max),
            };
            assert!(bytes <= exact.bytes && exact.bytes <= limit, "{seed}: {id}");
        }
    }
}

/// Counts an event of the flooder in every tenth place, and otherwise one of a new executable in a new cgroup.
fn flood(costs: &mut MakerCosts, events: u64) {
    for number in 0..events {
        let is_flooder = number % 10 == 0;
        let unit = if is_flooder {
            "flooder.service".to_owned()
        } else {
            format!("new-{number}.service")
        };
        let exe = if is_flooder {
            b"/bin/flooder".to_vec()
        } else {
            format!("/tmp/{number}").into_bytes()
        };
        let path = format!("/system.slice/{unit}");
        let text = Arc::new(WorkloadText::of(path.as_bytes(), false, None));
        let maker = Maker {
            uid: (number % MAKERS) as u32,
            cgroup_id: if is_flooder { 1 } else { number + 2 },
            exe: Some((costs.hash(&exe), &exe)),
        };
        costs.recorded(&maker, 1000, || Some(text));
        if number % 20 == 19 {
            costs.share(1.5);
        }
    }
}

fn by(costs: &mut MakerCosts, kind: MakerKind, top: usize) -> Answer {
    costs.table(kind, MakerOrder::Bytes, top, false)
}

fn summed(table: &Answer) -> (u64, u64) {
    let rows = table.rows.iter();
    rows.fold((0, 0), |(events, bytes), row| {
        (events + row.events, bytes + row.bytes)
    })
}

#[test]
fn a_hundred_thousand_names_neither_hide_a_flooder_nor_fill_the_memory() {
    const EVENTS: u64 = 112_000;
    let mut costs = MakerCosts::default();
    flood(&mut costs, EVENTS);
    assert!(costs.waiting.len() <= ORIGINS_MAX && costs.places.len() <= ORIGINS_MAX);
    for (kind, flooder) in [
        (MakerKind::Unit, "flooder.service"),
        (MakerKind::Exe, "/bin/flooder"),
    ] {
        for is_recent in [false, true] {
            let table = costs.table(kind, MakerOrder::Bytes, 5, is_recent);
            assert_eq!(table.names, NAMES_MAX);
            let first = &table.rows[0];
            assert_eq!(first.name, flooder);
            let all = EVENTS / 10 * 1000;
            assert!(first.bytes <= all && first.bytes + first.missing_bytes_max >= all);
            assert_eq!(first.events, EVENTS / 10, "it was never replaced");
            assert_eq!(summed(&table), (EVENTS, EVENTS * 1000));
            assert_eq!(table.rows[6 - 1].name, OTHERS);
        }
        let exported = costs.exported(kind);
        assert!(exported.len() <= EXPORTED_MAX + 2);
        assert_eq!(exported[0].name, flooder);
    }
    let table = by(&mut costs, MakerKind::Uid, 20);
    assert_eq!(
        (table.rows.len(), table.names_replaced),
        (MAKERS as usize, 0)
    );
    let time: u64 = table.rows.iter().map(|row| row.spent_ns).sum();
    assert_eq!(time, EVENTS * 1500);
}

#[test]
fn what_has_no_name_or_an_unknown_one_has_a_row_that_no_name_can_take() {
    let mut costs = MakerCosts::default();
    let of = |cgroup_id, exe| Maker {
        uid: 0,
        cgroup_id,
        exe,
    };
    let text = |path: &str| Some(Arc::new(WorkloadText::of(path.as_bytes(), false, None)));
    costs.recorded(&of(1, None), 10, || text("/"));
    costs.recorded(&of(2, Some((9, b"/bin/\xff"))), 20, || None);
    costs.recorded(&of(3, None), 40, || text("/lxc.payload.(none)"));
    costs.recorded(&of(3, None), 40, || panic!("it is known"));
    let rows = |table: Answer| -> Vec<(String, u64, u64)> {
        let rows = table.rows.into_iter();
        rows.map(|row| (row.name, row.events, row.bytes)).collect()
    };
    let row = |name: &str, events, bytes| (name.to_owned(), events, bytes);
    assert_eq!(
        rows(by(&mut costs, MakerKind::Container, 20)),
        [
            row("\\(none)", 2, 80),
            row("(none)", 1, 10),
            row("(unknown)", 1, 20)
        ]
    );
    assert_eq!(
        rows(by(&mut costs, MakerKind::Exe, 20)),
        [row("/bin/\u{fffd}", 1, 20), row("(none)", 3, 90)]
    );
    assert_eq!(
        rows(by(&mut costs, MakerKind::Uid, 0)),
        [row(OTHERS, 4, 110)]
    );
}

#[test]
fn recent_costs_are_those_of_two_windows() {
    let mut costs = MakerCosts::default();
    let maker = Maker {
        uid: 7,
        cgroup_id: 1,
        exe: None,
    };
    let mut now = costs.current.began;
    let mut pass = |costs: &mut MakerCosts| {
        costs.recorded(&maker, 100, || None);
        now += WINDOW;
        costs.tick(now);
        // Windows begin when they are asked for; the test is faster than that.
        costs.current.began = now;
    };
    for (passes, recent) in [(1, 1), (1, 1), (3, 1)] {
        (0..passes).for_each(|_| pass(&mut costs));
        let table = costs.table(MakerKind::Uid, MakerOrder::Events, 20, true);
        assert_eq!(table.total.events, recent);
    }
    costs.recorded(&maker, 100, || None);
    let recent = costs.table(MakerKind::Uid, MakerOrder::Events, 20, true);
    let whole = costs.table(MakerKind::Uid, MakerOrder::Events, 20, false);
    assert_eq!((recent.total.events, whole.total.events), (2, 6));
}

#[test]
fn a_long_name_is_cut_and_still_another_than_its_beginning() {
    let mut costs = MakerCosts::default();
    for len in [NAME_BYTES_MAX, NAME_BYTES_MAX + 1, 4096] {
        let path = vec![b'a'; len];
        let maker = Maker {
            uid: 0,
            cgroup_id: 1,
            exe: Some((costs.hash(&path), &path)),
        };
        costs.recorded(&maker, len, || None);
    }
    let table = by(&mut costs, MakerKind::Exe, 20);
    assert_eq!(table.rows.len(), 3);
    let longest = table.rows.iter().map(|row| row.name.len()).max();
    assert_eq!(longest, Some(NAME_BYTES_MAX + "…".len()));
}

/// `cargo test --release -p tarsier-daemon known_origin -- --nocapture` prints what an event costs.
#[test]
fn an_event_of_a_known_origin_looks_nothing_up() {
    const EVENTS: usize = 200_000;
    let each = |began: Instant| began.elapsed().as_nanos() / EVENTS as u128;
    // With the last number every origin is new.
    for origins in [1, 20, 300, EVENTS] {
        let mut costs = MakerCosts::default();
        let text = Arc::new(WorkloadText::of(b"/system.slice/a.service", false, None));
        let paths: Vec<String> = (0..origins).map(|n| format!("/usr/bin/{n}")).collect();
        let exe = |path: &String| costs.hash(path.as_bytes());
        let began = Instant::now();
        let hashes: Vec<u64> = paths.iter().cycle().take(EVENTS).map(exe).collect();
        let hash_ns = each(began);
        let mut looked_up = 0;
        let began = Instant::now();
        for number in 0..EVENTS {
            let path = paths[number % origins].as_bytes();
            let maker = Maker {
                uid: 0,
                cgroup_id: 2,
                exe: Some((hashes[number], path)),
            };
            costs.recorded(&maker, 800, || {
                looked_up += 1;
                Some(Arc::clone(&text))
            });
            if number % 20 == 19 {
                costs.share(1.0);
            }
        }
        let ns = each(began);
        println!("{origins} origins: {ns} ns for each event, {hash_ns} ns for the hash of a path");
        assert_eq!(looked_up, origins);
    }
}
