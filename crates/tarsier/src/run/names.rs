//! Names of users and groups for ENRICHED.

use event::{NameCache, Names};
use nix::unistd::{Gid, Group, Uid, User};

/// The host's user database, each id asked for once.
pub(super) fn system_names() -> Box<dyn Names + Send> {
    Box::new(NameCache::new(
        |uid| {
            User::from_uid(Uid::from_raw(uid))
                .ok()
                .flatten()
                .map(|user| user.name)
        },
        |gid| {
            Group::from_gid(Gid::from_raw(gid))
                .ok()
                .flatten()
                .map(|group| group.name)
        },
    ))
}
