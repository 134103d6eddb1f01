//! Names of users and groups for ENRICHED.

use crate::system::System;
use event::{NameCache, Names};
use std::sync::Arc;

/// The user database of `system`, each id asked for once.
pub fn names(system: Arc<dyn System>) -> Box<dyn Names + Send> {
    let groups = Arc::clone(&system);
    Box::new(NameCache::new(
        move |uid| system.user(uid),
        move |gid| groups.group(gid),
    ))
}
