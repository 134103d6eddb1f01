//! SELinux's labels: where the kernel keeps their numbers, and the text that each number stands for.
//!
//! A number (sid) is in a structure of SELinux's own, in the room that it has in `cred->security` and in
//! `inode->i_security`. Its text is in the table of the policy (security/selinux/ss/sidtab.c), from which nothing goes
//! while the policy is in force: so it is known of tasks that have ended and of files that are gone, too.
//!
//! Places are not taken on trust: each is the only one at which known tasks and objects have what the kernel shows of
//! them. Where there is no such place, no label is read.

mod layout;
mod text;

use crate::kernel::kallsyms;
use crate::kernel::kernel_btf;
use crate::kernel::memory::{KernelMemory, ReadMemory};
use crate::kernel::symbol_names::SELINUX;
use layout::KernelLayout;
use std::cell::RefCell;
use std::fs;
use text::NamesRead;

/// A thread of the kernel: it has the kernel's own label, whose number is the first.
const KERNEL_THREAD: &str = "/proc/2/attr/current";
const SELF: &str = "/proc/thread-self/attr/current";
/// Number of the label of what the kernel makes for itself (SECINITSID_KERNEL).
const KERNEL_ID: u32 = 1;

/// Where programs find the number of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelPlaces {
    /// The number of a task's label: behind `cred->security`, in bytes.
    pub(crate) subject: u16,
    /// The number of an object's label: behind `inode->i_security`, in bytes.
    pub(crate) object: u16,
}

/// SELinux in the running kernel.
pub struct Selinux {
    memory: KernelMemory,
    layout: KernelLayout,
    places: LabelPlaces,
    /// Address of the pointer to the policy.
    policy_at: u64,
    names: RefCell<NamesRead>,
    /// The policy that these names are of.
    names_of: RefCell<Option<PolicyVersion>>,
}

/// The policy that is in force. Another one may have other texts for the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    address: u64,
    /// How often one was loaded.
    pub loads: u32,
}

impl Selinux {
    /// SELinux of this kernel, with a policy; `None` if it labels nothing, or labels cannot be read for certain.
    pub fn of_this_kernel() -> Option<Selinux> {
        let own = label_in(SELF)?;
        // Another module's label, as AppArmor's, has no colons.
        if own.iter().filter(|&&byte| byte == b':').count() < 2 {
            return None;
        }

        let layout = KernelLayout::of(&*kernel_btf::of_this_kernel()?)?;
        let memory = KernelMemory::open()?;
        let kernel = label_in(KERNEL_THREAD)?;
        let of_kernel = |policy| text::of(&memory, &layout, policy, &RefCell::default(), KERNEL_ID);
        let policy_at = policies(&memory, &layout)?
            .into_iter()
            .find(|&at| memory.address(at).and_then(of_kernel).as_ref() == Some(&kernel))?;

        let mut selinux = Selinux {
            policy_at,
            memory,
            layout,
            places: LabelPlaces::default(),
            names: RefCell::default(),
            names_of: RefCell::default(),
        };
        selinux.places = LabelPlaces {
            subject: selinux.place_of_subject(&own, &kernel)?,
            object: selinux.place_of_object()?,
        };
        Some(selinux)
    }

    /// Where programs find numbers.
    pub(crate) fn places(&self) -> LabelPlaces {
        self.places
    }

    /// The text of a label; `None` if the policy has no such number, or if another one came into force meanwhile.
    pub fn text(&self, id: u32) -> Option<Vec<u8>> {
        let before = self.policy()?;
        let mut names_of = self.names_of.borrow_mut();
        if *names_of != Some(before) {
            self.names.borrow_mut().clear();
            *names_of = Some(before);
        }
        let text = text::of(&self.memory, &self.layout, before.address, &self.names, id)?;
        (self.policy()? == before).then_some(text)
    }

    /// The policy in force.
    pub fn policy(&self) -> Option<PolicyVersion> {
        let address = self.memory.address(self.policy_at)?;
        let loads = self.memory.number(address + self.layout.loads)?;
        Some(PolicyVersion { address, loads })
    }

    /// Where the number of a task's label is: the one place at which this thread, the first process and the kernel's own
    /// first task have the numbers of the labels that the kernel shows of them.
    fn place_of_subject(&self, own: &[u8], kernel: &[u8]) -> Option<u16> {
        let (memory, layout) = (&self.memory, &self.layout);
        let this = memory.current_task()?;
        let (mut first, mut idle) = (this, memory.address(this + layout.parent)?);
        for _ in 0..DEPTH_MAX {
            let parent = memory.address(idle + layout.parent)?;
            if parent == idle {
                break;
            }
            (first, idle) = (idle, parent);
        }

        let of_first = label_in(FIRST)?;
        let tasks = [(this, own), (first, &of_first), (idle, kernel)];
        let is_it = |place: u64| {
            let number = |task: u64| {
                let cred = memory.address(task + layout.cred)?;
                let room = memory.address(cred + layout.security)?;
                memory.number(room + place)
            };
            tasks.iter().all(|(task, label)| {
                let text = number(*task).and_then(|number| self.text(number));
                text.as_deref() == Some(label)
            })
        };
        only(
            rooms()
                .map(|room| room + layout.sid_of_cred)
                .filter(|&place| is_it(place)),
        )
    }

    /// Where the number of an object's label is: behind the address of the object itself, for two objects.
    fn place_of_object(&self) -> Option<u16> {
        let (memory, layout) = (&self.memory, &self.layout);
        let this = memory.current_task()?;
        let root = memory.address(memory.address(this + layout.fs)? + layout.root)?;
        let exe = memory.address(memory.address(this + layout.mm)? + layout.exe)?;
        let inodes = [
            memory.address(root + layout.inode)?,
            memory.address(exe + layout.inode_of_file)?,
        ];
        let is_it = |room: u64| {
            inodes.iter().all(|&inode| {
                let security = memory.address(inode + layout.i_security);
                let back = security.and_then(|at| memory.address(at + room + layout.back));
                back == Some(inode)
            })
        };
        only(
            rooms()
                .filter(|&room| is_it(room))
                .map(|room| room + layout.sid_of_inode),
        )
    }
}

/// The most processes between this one and the first.
const DEPTH_MAX: usize = 1024;
/// The first process.
const FIRST: &str = "/proc/1/attr/current";
/// Behind which the room of a module does not begin, in bytes.
const ROOM_MAX: u64 = 512;
/// Bytes of code that are looked at.
const CODE_BYTES: usize = 128;

/// Where the room of a module may begin.
fn rooms() -> impl Iterator<Item = u64> {
    (0..ROOM_MAX).step_by(size_of::<u64>())
}

/// The only place, if there is just one.
fn only(mut places: impl Iterator<Item = u64>) -> Option<u16> {
    let place = places.next()?;
    let is_sole = places.next().is_none();
    is_sole.then(|| u16::try_from(place).ok())?
}

/// Addresses at which the pointer to the policy may be.
fn policies(memory: &KernelMemory, layout: &KernelLayout) -> Option<Vec<u64>> {
    let [mut state, mut function] = [0; 2];
    kallsyms::each(kallsyms::of_this_kernel().ok()?, |symbol| {
        if symbol.name == SELINUX[0] {
            state = symbol.address;
        } else if symbol.name == SELINUX[1] {
            function = symbol.address;
        }
    })
    .ok()?;
    if state != 0 {
        return Some(vec![state + layout.policy]);
    }
    if function == 0 || !cfg!(target_arch = "x86_64") {
        return None;
    }

    // Somewhere the function has the distance from the next instruction to the pointer, which it reads. What else seems
    // to be one leads to no policy.
    let code = memory.bytes(function, CODE_BYTES)?;
    let distances = code.windows(4).zip(function + 4..);
    let pointers = distances.filter_map(|(bytes, next)| {
        let distance = i32::from_le_bytes(bytes.try_into().ok()?);
        Some(next.wrapping_add_signed(distance.into()))
    });
    Some(pointers.collect())
}

/// The label in a file of `/proc`, without the NUL at its end.
fn label_in(path: &str) -> Option<Vec<u8>> {
    let mut label = fs::read(path).ok()?;
    while label.last() == Some(&0) {
        label.pop();
    }
    (!label.is_empty()).then_some(label)
}
