//! Events over time by label, in a bounded number of equal intervals.

use super::ids::{Fast, LabelIds};
use std::collections::HashMap;

/// Intervals of a picture.
pub(super) const BUCKETS_MAX: usize = 240;
/// Labels that have their own numbers; the others share one row.
pub(super) const LABELS_MAX: usize = 400;

/// Events of an interval: all, and those that failed.
pub type Bucket = [u64; 2];

/// The intervals that all series of a log share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    /// Start of the first interval, in seconds since 1970.
    pub(super) start_s: u64,
    /// Length of an interval in seconds: a power of two.
    pub(super) width_s: u64,
}

impl Scale {
    pub(super) fn at(time_s: u64) -> Scale {
        Scale {
            start_s: time_s,
            width_s: 1,
        }
    }

    /// The interval of `time_s`; `None` if the scale has to be changed first.
    pub(super) fn bucket(self, time_s: u64) -> Option<usize> {
        let bucket = (time_s.checked_sub(self.start_s)? / self.width_s) as usize;
        (bucket < BUCKETS_MAX).then_some(bucket)
    }

    /// The finest scale that holds all times from `first_s` to `last_s`, coarser than this one.
    pub(super) fn fitted(self, first_s: u64, last_s: u64) -> Scale {
        let mut scale = self;
        while scale.bucket(first_s).is_none() || scale.bucket(last_s).is_none() {
            let width_s = scale.width_s.saturating_mul(2);
            scale = Scale {
                start_s: first_s - first_s % width_s,
                width_s,
            };
        }
        scale
    }
}

/// Events over time for each label.
#[derive(Debug, Default)]
pub(super) struct Series {
    labels: HashMap<u32, Vec<Bucket>, Fast>,
    all: Vec<Bucket>,
    is_pruned: bool,
}

/// A label with its intervals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Key, user or unit.
    pub label: Box<[u8]>,
    /// Counts of each interval.
    pub buckets: Vec<Bucket>,
    /// Sum of all intervals.
    pub sum: Bucket,
}

/// The labels with the most events, and all others together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Most events first.
    pub rows: Vec<Row>,
    /// All other labels, if there are any.
    pub others: Option<Row>,
    /// Number of others.
    pub others_number: usize,
    /// Whether labels with few events were forgotten; their events count for `others`.
    pub is_pruned: bool,
}

fn put(buckets: &mut Vec<Bucket>, at: usize, add: Bucket) {
    if buckets.len() <= at {
        buckets.resize(at + 1, [0; 2]);
    }
    buckets[at][0] += add[0];
    buckets[at][1] += add[1];
}

fn sum(buckets: &[Bucket]) -> Bucket {
    buckets
        .iter()
        .fold([0; 2], |sum, each| [sum[0] + each[0], sum[1] + each[1]])
}

impl Series {
    /// Counts an event of the label with this number in an interval.
    pub(super) fn add(&mut self, bucket: usize, is_failure: bool, label: u32) {
        let add = [1, u64::from(is_failure)];
        put(&mut self.all, bucket, add);
        if let Some(buckets) = self.labels.get_mut(&label) {
            return put(buckets, bucket, add);
        }
        let mut buckets = Vec::new();
        put(&mut buckets, bucket, add);
        self.labels.insert(label, buckets);
        if self.labels.len() > LABELS_MAX {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let mut sums: Vec<_> = self.labels.values().map(|each| sum(each)[0]).collect();
        let middle = sums.len() / 2;
        let (_, least, _) = sums.select_nth_unstable(middle);
        let least = *least;
        self.labels.retain(|_, buckets| sum(buckets)[0] > least);
        self.is_pruned = true;
    }

    /// Brings all intervals from one scale to a coarser one.
    pub(super) fn rescale(&mut self, from: Scale, to: Scale) {
        for buckets in self.labels.values_mut().chain([&mut self.all]) {
            let old = std::mem::take(buckets);
            for (number, bucket) in old.into_iter().enumerate() {
                let time_s = from.start_s + number as u64 * from.width_s;
                let at = (time_s - to.start_s) / to.width_s;
                put(buckets, at as usize, bucket);
            }
        }
    }

    /// The numbers of its labels.
    pub(super) fn labels(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.labels.keys().copied()
    }

    /// Takes the new numbers of labels.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        let labels = std::mem::take(&mut self.labels).into_iter();
        self.labels = labels
            .map(|(label, buckets)| (numbers[label as usize], buckets))
            .collect();
    }

    pub(super) fn rows(&self, most: usize, labels: &LabelIds) -> Rows {
        let mut rows: Vec<_> = self
            .labels
            .iter()
            .map(|(label, buckets)| Row {
                label: labels.text(*label).into(),
                buckets: buckets.clone(),
                sum: sum(buckets),
            })
            .collect();
        rows.sort_by(|a, b| (b.sum[0], &a.label).cmp(&(a.sum[0], &b.label)));

        let others_number = rows.len().saturating_sub(most);
        rows.truncate(most);
        let mut rest = self.all.clone();
        for row in &rows {
            for (left, shown) in rest.iter_mut().zip(&row.buckets) {
                left[0] -= shown[0];
                left[1] -= shown[1];
            }
        }

        let sum = sum(&rest);
        let others = Row {
            label: Box::default(),
            buckets: rest,
            sum,
        };

        Rows {
            rows,
            others: (sum[0] > 0).then_some(others),
            others_number,
            is_pruned: self.is_pruned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_widen_until_early_and_late_times_fit() {
        let mut scale = Scale::at(1000);
        let (mut first_s, mut last_s) = (1000, 1000);
        for time_s in [1100, 3, 90_000, 1_000_000_000] {
            (first_s, last_s) = (first_s.min(time_s), last_s.max(time_s));
            scale = scale.fitted(first_s, last_s);
            assert!(scale.bucket(first_s).is_some(), "{scale:?}");
            assert!(scale.bucket(last_s).is_some(), "{scale:?}");
        }
        assert!(Scale::at(0)
            .fitted(0, u64::MAX / 1000)
            .bucket(u64::MAX / 1000)
            .is_some());
    }

    #[test]
    fn others_have_what_the_shown_labels_have_not() {
        let (mut series, mut labels) = (Series::default(), LabelIds::default());
        let all = labels.of(b"all");
        for label in 0..3 * LABELS_MAX {
            let label = label.to_string();
            series.add(label.len(), false, labels.of(label.as_bytes()));
            series.add(label.len(), false, all);
        }
        let rows = series.rows(1, &labels);
        assert_eq!(&*rows.rows[0].label, b"all");
        assert_eq!(rows.rows[0].sum[0], 3 * LABELS_MAX as u64);
        let others = rows.others.expect("others");
        assert_eq!(others.sum[0], 3 * LABELS_MAX as u64);
        assert!(rows.is_pruned);
    }

    #[test]
    fn rescaling_loses_no_event() {
        let (from, mut series) = (Scale::at(1001), Series::default());
        let mut labels = LabelIds::default();
        for bucket in 0..BUCKETS_MAX {
            series.add(bucket, bucket % 2 == 0, labels.of(b"a"));
        }
        let to = from.fitted(17, 1240);
        series.rescale(from, to);
        assert_eq!(series.rows(1, &labels).rows[0].sum, [240, 120]);
    }
}
