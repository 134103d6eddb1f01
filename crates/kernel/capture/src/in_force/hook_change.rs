//! Effect of a change of rules on the hooks.

/// Numbers of hooks, each of which is a program attached to a place in the kernel, or to several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookChange {
    /// Hooks in force after the change.
    pub hooks: usize,
    /// Hooks put in force by it.
    pub armed: usize,
    /// Hooks put out of force by it. They are detached a few seconds later unless a rule needs them again.
    pub removed: usize,
}

impl HookChange {
    /// The change from `before` hooks to `hooks`, with `removed` hooks that the rules no longer need.
    pub(crate) fn between(before: usize, hooks: usize, removed: usize) -> HookChange {
        HookChange {
            hooks,
            armed: (hooks + removed).saturating_sub(before),
            removed,
        }
    }

    /// Whether any hook was armed or removed.
    pub fn is_any(&self) -> bool {
        self.armed > 0 || self.removed > 0
    }
}
