//! Numbers of labels: each label of an event is hashed once, whatever number of tables counts it.

use std::collections::HashMap;
use std::sync::Arc;

/// Hashes with a seed of each run.
pub(super) type Fast = foldhash::fast::RandomState;

/// Labels that may be added before those that no table has are forgotten.
const UNUSED_MAX: usize = 100_000;
/// Bytes of a label that are kept.
pub(super) const LABEL_BYTES_MAX: usize = 300;

/// Labels with their numbers.
#[derive(Debug, Default)]
pub(super) struct LabelIds {
    ids: HashMap<Arc<[u8]>, u32, Fast>,
    texts: Vec<Arc<[u8]>>,
    /// Labels that were in use when the others were forgotten.
    used: usize,
}

impl LabelIds {
    /// The number of a label.
    pub(super) fn of(&mut self, label: &[u8]) -> u32 {
        let label = &label[..label.len().min(LABEL_BYTES_MAX)];
        if let Some(id) = self.ids.get(label) {
            return *id;
        }
        let (id, text) = (self.texts.len() as u32, Arc::<[u8]>::from(label));
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    pub(super) fn text(&self, id: u32) -> &[u8] {
        &self.texts[id as usize]
    }

    /// Whether labels have to be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.texts.len() > self.used + UNUSED_MAX
    }

    /// Forgets all labels that are not among `used`. Returns the new numbers by the old ones.
    pub(super) fn keep(&mut self, used: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.texts.len()];
        let mut texts = Vec::new();
        for id in used {
            let number = &mut numbers[id as usize];
            if *number == u32::MAX {
                *number = texts.len() as u32;
                texts.push(Arc::clone(&self.texts[id as usize]));
            }
        }

        let ids = texts.iter().zip(0..);
        self.ids = ids.map(|(text, id)| (Arc::clone(text), id)).collect();
        self.used = texts.len();
        self.texts = texts;
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_no_table_has_are_forgotten() {
        let mut labels = LabelIds::default();
        let ids: Vec<u32> = (0..UNUSED_MAX as u32 + 1)
            .map(|number| labels.of(&number.to_le_bytes()))
            .collect();
        assert!(labels.is_full());
        let numbers = labels.keep([ids[7], ids[3], ids[7]].into_iter());
        assert!(!labels.is_full());
        let new = |old: u32| numbers[old as usize];
        assert_eq!(labels.text(new(ids[3])), 3_u32.to_le_bytes());
        assert_eq!(labels.of(&7_u32.to_le_bytes()), new(ids[7]));
        assert_eq!(labels.of(&8_u32.to_le_bytes()), 2);
    }
}
