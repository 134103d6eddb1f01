//! Names of containers and pods.

use serde::{Deserialize, Serialize};

/// Names of a container and its pod, from the files of their runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerNames {
    /// Name of the container.
    pub container: Option<String>,
    /// Name of its image.
    pub image: Option<String>,
    /// Name of the pod.
    pub pod: Option<String>,
    /// Namespace of the pod.
    pub namespace: Option<String>,
}
