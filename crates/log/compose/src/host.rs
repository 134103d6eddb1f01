//! Facts about the system that the composer keeps or asks for.

use crate::cgroups::{CgroupCounts, CgroupPath, Cgroups};
use crate::clock::Clock;
use crate::fcaps;
use crate::labels::{LabelTexts, Labels, NumberedLabels, ReadLabels};
use crate::system::{KernelFile, Origin, System};
use record::record::Inode;
use record::wire::{CgroupFrame, Event};
use record::WorkloadText;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The system whose events are composed, with the facts about it that are read once or every second.
pub(crate) struct Host {
    pub(crate) system: Arc<dyn System>,
    /// Labelling of processes.
    pub(crate) labels: Labels,
    /// Every capability that the kernel knows, as a bit mask.
    pub(crate) all_caps: u64,
    /// Id of this start of the system; empty if it is not known.
    pub(crate) boot: Vec<u8>,
    /// Time of the frame that is taken now, or the greatest for an operation that waited: [`Origin::made_ns`].
    pub(crate) frame_ns: u64,
    clock: Clock,
    cgroups: Cgroups,
    read_labels: RefCell<ReadLabels>,
    /// Where frames have numbers of labels.
    numbered: Option<NumberedLabels>,
}

impl Host {
    /// Reads clocks, labels and capabilities of `system`. No cgroup is known.
    pub(crate) fn new(system: Arc<dyn System>) -> Host {
        let boot = system.kernel_file(KernelFile::BootId).unwrap_or_default();
        Host {
            boot: boot.trim_ascii().to_vec(),
            frame_ns: 0,
            clock: Clock::now(&*system),
            labels: Labels::now(&*system),
            all_caps: fcaps::all_caps(&*system),
            cgroups: Cgroups::default(),
            read_labels: RefCell::default(),
            numbered: None,
            system,
        }
    }

    /// Begins the look-ups of an event of this maker.
    pub(crate) fn begin_event(&self, uid: u32, cgroup_id: u64) {
        self.system.begin_event(Origin {
            uid,
            cgroup_id,
            made_ns: self.frame_ns,
        });
    }

    /// Reads clocks and labels again.
    pub(crate) fn refresh(&mut self) {
        self.clock = Clock::now(&*self.system);
        self.labels = Labels::now(&*self.system);
        if let Some(numbered) = &mut self.numbered {
            numbered.refresh();
        }
    }

    /// Frames have numbers of labels from now on, whose texts these are.
    pub(crate) fn read_labels_by(&mut self, texts: Box<dyn LabelTexts>) {
        self.numbered = Some(NumberedLabels::new(texts));
    }

    /// How many labels of records could not be read.
    pub(crate) fn labels_missing(&self) -> u64 {
        self.numbered.as_ref().map_or(0, NumberedLabels::missing)
    }

    /// The label of an event's task: that in the call, where events have its number. The one in `/proc` is not taken then,
    /// since the task may have got it since.
    pub(crate) fn subject(&self, event: &Event<'_>) -> Option<Cow<'static, [u8]>> {
        let Some(numbered) = &self.numbered else {
            let header = event.header();
            return self.label(header.pid, header.frame.time_ns);
        };
        Some(numbered.text(event.subject()?)?.to_vec().into())
    }

    /// The label that an object had in the call.
    pub(crate) fn object(&self, inode: Option<Inode>) -> Option<Rc<[u8]>> {
        let number = inode?.label;
        match &self.numbered {
            Some(numbered) if number != 0 => numbered.text(number),
            _ => None,
        }
    }

    /// The Unix time of a monotonic time, both in nanoseconds.
    pub(crate) fn unix_ns(&self, monotonic_ns: u64) -> u64 {
        self.clock.unix_ns(monotonic_ns)
    }

    /// The label of process `pid`, for an event at `event_ns` (CLOCK_MONOTONIC); `None` if processes have no labels, or
    /// the process has ended.
    pub(crate) fn label(&self, pid: u32, event_ns: u64) -> Option<Cow<'static, [u8]>> {
        let lately = &mut self.read_labels.borrow_mut();
        self.labels.at(&*self.system, pid, event_ns, lately)
    }

    /// Looks at all cgroups that there are. Returns whether the system shows the whole hierarchy.
    pub(crate) fn survey_cgroups(&mut self) -> bool {
        self.cgroups.survey(&*self.system)
    }

    /// Learns of a cgroup from a frame before its turn.
    pub(crate) fn learn_cgroup(&mut self, frame: &CgroupFrame<'_>) {
        self.cgroups.learn(frame);
    }

    /// Takes a frame that tells of a cgroup, in its turn.
    pub(crate) fn take_cgroup(&mut self, frame: &CgroupFrame<'_>) {
        self.cgroups.take(frame);
    }

    /// Asks for the names of the container that a new cgroup is of, if it is of one.
    pub(crate) fn name_container(&mut self, frame: &CgroupFrame<'_>) {
        if !frame.is_removed {
            self.cgroups.name(frame.id, &*self.system);
        }
    }

    /// Counts of cgroups.
    pub(crate) fn cgroup_counts(&self) -> CgroupCounts {
        self.cgroups.counts()
    }

    /// Text that the log has for the cgroup with this id.
    pub(crate) fn workload(&mut self, cgroup_id: u64) -> Arc<WorkloadText> {
        self.cgroups.text(cgroup_id, &*self.system)
    }

    /// The path of the cgroup with this id, and whether it was cut; `None` if it is not known.
    pub(crate) fn cgroup_path(&mut self, cgroup_id: u64) -> Option<CgroupPath> {
        self.cgroups.path(cgroup_id, &*self.system)
    }

    /// The table of cgroups.
    pub(crate) fn cgroups(&mut self) -> &mut Cgroups {
        &mut self.cgroups
    }

    /// The workload of the cgroup with this id; `None` if it is not known.
    pub(crate) fn known_workload(&mut self, cgroup_id: u64) -> Option<Arc<WorkloadText>> {
        self.cgroups.find(cgroup_id, &*self.system, false)
    }
}
