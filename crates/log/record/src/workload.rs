//! Workload of an event, as the log tells it.

use crate::{json, put, ContainerNames};
use identity::Workload;
use std::sync::Arc;

/// The text that names the workload of an event. Made once for each cgroup, since many events share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadText {
    /// ` UNIT="…"` and so on, as auditd writes interpretations; empty if nothing is known.
    enriched: Vec<u8>,
    /// The value of `workload`.
    json: Vec<u8>,
    unit: Option<Arc<[u8]>>,
    container: Option<Arc<[u8]>>,
}

impl WorkloadText {
    /// The text for a cgroup with this path; `is_cut` tells that the whole path is longer. `names` are those of the
    /// container and pod, as far as they are known; `None` if nobody was asked for them.
    pub fn of(path: &[u8], is_cut: bool, names: Option<&ContainerNames>) -> WorkloadText {
        let workload = Workload::of(path);
        let container = workload.container.as_ref();
        WorkloadText {
            enriched: enriched(&workload, names),
            json: json::workload(&workload, names, path, is_cut),
            unit: workload.unit.as_deref().map(Arc::from),
            container: container.map(|container| Arc::from(&*container.id)),
        }
    }

    /// The text for a cgroup that is not known.
    pub fn unknown() -> WorkloadText {
        WorkloadText {
            enriched: Vec::new(),
            json: b"{\"cgroup\":null}".to_vec(),
            unit: None,
            container: None,
        }
    }

    /// The system unit: the outermost one.
    pub fn unit(&self) -> Option<&Arc<[u8]>> {
        self.unit.as_ref()
    }

    /// Id of the innermost container.
    pub fn container(&self) -> Option<&Arc<[u8]>> {
        self.container.as_ref()
    }

    /// ` NAME="VALUE"` for each that is known.
    pub(crate) fn enriched(&self) -> &[u8] {
        &self.enriched
    }

    /// A JSON object.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }
}

fn enriched(workload: &Workload<'_>, names: Option<&ContainerNames>) -> Vec<u8> {
    let unknown = ContainerNames::default();
    let names = names.unwrap_or(&unknown);
    let container = workload.container.as_ref();
    let fields = [
        (" UNIT=", workload.unit.as_deref()),
        (" USER_UNIT=", workload.user_unit.as_deref()),
        (" CONTAINER=", container.map(|container| &*container.id)),
        (" CONTAINER_NAME=", text(&names.container)),
        (" CONTAINER_IMAGE=", text(&names.image)),
        (" POD=", workload.pod.as_deref()),
        (" POD_NAME=", text(&names.pod)),
        (" POD_NAMESPACE=", text(&names.namespace)),
    ];

    let mut out = Vec::new();
    for (name, value) in fields {
        let Some(value) = value else {
            continue;
        };
        put::text(&mut out, name);
        put_value(&mut out, value);
    }

    out
}

fn text(name: &Option<String>) -> Option<&[u8]> {
    name.as_deref().map(str::as_bytes)
}

/// Appends `"VALUE"`, or hex if a byte is not allowed in quotes (audit_encode_nv_string()): whoever chose the value must
/// not be able to add another field.
fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    let odd = |&byte: &u8| byte == b'"' || !(0x21..0x7f).contains(&byte);
    if value.iter().any(odd) {
        put::hex_bytes(out, value)
    } else {
        out.push(b'"');
        out.extend_from_slice(value);
        out.push(b'"');
    }
}
