//! Names of users and groups for the ENRICHED log format.

use crate::system::System;
use record::{NameCache, Names};
use std::sync::Arc;

/// Names from the user and group databases of `system`, cached by [`NameCache`].
pub fn names(system: Arc<dyn System>) -> Box<dyn Names + Send> {
    let groups = Arc::clone(&system);
    Box::new(NameCache::new(
        move |uid| system.user(uid),
        move |gid| groups.group(gid),
    ))
}
