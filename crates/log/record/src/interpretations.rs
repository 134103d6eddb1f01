//! Keeps what ENRICHED adds to records: for a call or an object, a few numbers decide about it, and they come again.

use crate::{enrich, Names, RecordType};

/// Number of texts that are kept.
const KEPT: usize = 64;

/// The numbers that alone decide what ENRICHED adds to a record of their type.
pub(crate) type Deciding = [u32; 11];

/// The texts that were added last, found by what decides about them.
#[derive(Debug, Default)]
pub(crate) struct Interpretations {
    /// Empty until the first text; then it has [`KEPT`] entries.
    kept: Vec<Kept>,
}

#[derive(Debug, Clone, Default)]
struct Kept {
    /// `None` if the entry is unused.
    of: Option<(RecordType, Deciding)>,
    text: Vec<u8>,
}

impl Interpretations {
    /// Forgets all texts, since names may have changed.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
    }

    /// Appends the same as [`enrich::append`], whose arguments these are too. `by`: what alone decides about it.
    pub(crate) fn append(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        (kind, by): (RecordType, Option<Deciding>),
        names: &mut dyn Names,
    ) {
        let Some(by) = by else {
            return enrich::append(out, start, kind, names);
        };

        if self.kept.is_empty() {
            self.kept.resize_with(KEPT, Kept::default);
        }

        let kept = &mut self.kept[place(&by)];
        if kept.of != Some((kind, by)) {
            let end = out.len();
            let unanswered = names.unanswered();
            enrich::append(out, start, kind, names);
            if names.unanswered() == unanswered {
                kept.of = Some((kind, by));
                kept.text.clear();
                kept.text.extend_from_slice(&out[end..]);
            }
            return;
        }

        out.extend_from_slice(&kept.text);
    }
}

fn place(by: &Deciding) -> usize {
    let mix = |hash: u32, number: &u32| hash.rotate_left(5).wrapping_add(*number);
    let hash = by.iter().fold(0, mix).wrapping_mul(0x9e37_79b1);
    (hash >> 16) as usize % KEPT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Body, Inode, PathItem, Syscall};
    use crate::{NameAnswer, NameCache, NameTable};
    use proptest::prelude::*;

    const I386: u32 = 0x4000_0003;

    fn names() -> NameTable {
        NameTable::parse("one:x:1:1::/:\ntwo:x:2:2::/:\n", "grp:x:1:\nadm:x:4:\n")
    }

    /// The body of a record, and what is added to it: kept or not.
    fn added(kept: &mut Interpretations, record: &impl Body) -> [String; 2] {
        let mut texts = [Vec::new(), Vec::new()];
        for text in &mut texts {
            record.write(text);
        }
        let by = (record.kind(), record.decides_alone());
        kept.append(&mut texts[0], 0, by, &mut names());
        enrich::append(&mut texts[1], 0, record.kind(), &mut names());
        texts.map(|text| String::from_utf8(text).expect("ASCII"))
    }

    fn call<'a>(arch: u32, nr: i32, ids: [u32; 9], a0: u64, subj: &'a [u8]) -> Syscall<'a> {
        let [auid, uid, gid, euid, suid, fsuid, egid, sgid, fsgid] = ids;
        Syscall {
            arch,
            nr,
            personality: 0,
            exit: Some(0),
            a: [a0, 0, 0, 0],
            items: 0,
            is_cut: false,
            ppid: 1,
            pid: 2,
            auid,
            uid,
            gid,
            euid,
            suid,
            fsuid,
            egid,
            sgid,
            fsgid,
            tty: b"pts0",
            ses: 1,
            comm: b"a uid=1",
            exe: Some(b"/bin/gid=1"),
            subj: Some(subj),
            key: Some(b"auid=1"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(testkit::times(40, 256)))]

        /// Few values, so that calls come again, and differ in one thing only.
        #[test]
        fn what_is_kept_is_what_would_be_added(
            calls in prop::collection::vec(
                (
                    prop::sample::select(vec![I386, 0xc000_003e, 7]),
                    prop::sample::select(vec![1, 102, 117, 9999]),
                    prop::array::uniform9(prop::sample::select(vec![0, 1, 2, 5, u32::MAX])),
                    0..3_u64,
                    prop::sample::select(vec!["unconfined", "a uid=1 (enforce)", "id=1"]),
                ),
                0..60,
            ),
        ) {
            let mut kept = Interpretations::default();
            for (arch, nr, ids, a0, subj) in calls {
                let [kept, made] = added(&mut kept, &call(arch, nr, ids, a0, subj.as_bytes()));
                prop_assert_eq!(kept, made);
            }
        }
    }

    #[test]
    fn paths_differ_by_their_owners() {
        let mut kept = Interpretations::default();
        for (ouid, ogid, obj) in [
            (1, 1, "l"),
            (1, 4, "l"),
            (1, 1, "l"),
            (1, 1, "l ouid=2"),
            (0, 9, "l"),
        ] {
            let inode = Inode {
                ouid,
                ogid,
                ..Inode::default()
            };
            for inode in [Some(inode), None] {
                let item = PathItem {
                    name: Some(b"/x ouid=2"),
                    inode,
                    obj: Some(obj.as_bytes()),
                    ..PathItem::default()
                };
                let [kept, made] = added(&mut kept, &item);
                assert_eq!(kept, made);
            }
        }
    }

    #[test]
    fn what_could_not_be_looked_up_is_asked_for_again_and_other_names_are_forgotten() {
        let answers = [
            NameAnswer::NotNow,
            NameAnswer::Nameless,
            NameAnswer::Name("late".to_owned()),
        ];
        let mut answers = answers.into_iter();
        let mut names = NameCache::new(
            move |_| answers.next().expect("no more is asked"),
            |_| NameAnswer::Nameless,
        );
        let mut kept = Interpretations::default();
        let item = PathItem {
            inode: Some(Inode {
                ouid: 5,
                ..Inode::default()
            }),
            ..PathItem::default()
        };
        let mut added = |forgets: bool| {
            if forgets {
                names.forget();
                kept.forget();
            }
            let mut text = Vec::new();
            item.write(&mut text);
            let body = text.len();
            let by = (item.kind(), item.decides_alone());
            kept.append(&mut text, 0, by, &mut names);
            String::from_utf8(text.split_off(body)).expect("ASCII")
        };
        let with = |name| format!("\u{1d}OUID=\"{name}\" OGID=\"root\"");
        for _ in 0..3 {
            assert_eq!(added(false), with("unknown(5)"));
        }
        assert_eq!(added(true), with("late"));
        assert_eq!(added(false), with("late"));
    }
}
