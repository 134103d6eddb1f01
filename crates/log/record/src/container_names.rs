//! Names of containers and pods.

/// Names of a container and its pod, from the files of their runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl ContainerNames {
    /// The names, each ended by NUL; what is not known is empty.
    pub fn to_bytes(&self) -> Vec<u8> {
        let names = [&self.container, &self.image, &self.pod, &self.namespace];
        let texts = names.map(|name| name.as_deref().unwrap_or_default());
        let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
        bytes.collect()
    }

    /// The inverse of [`ContainerNames::to_bytes`]; `None` if the bytes are not of that form.
    pub fn from_bytes(bytes: &[u8]) -> Option<ContainerNames> {
        let texts = std::str::from_utf8(bytes).ok()?.strip_suffix('\0')?;
        let names = texts.split('\0').map(|text| {
            let is_known = !text.is_empty();
            is_known.then(|| text.to_owned())
        });
        let names: [Option<String>; 4] = names.collect::<Vec<_>>().try_into().ok()?;
        let [container, image, pod, namespace] = names;
        Some(ContainerNames {
            container,
            image,
            pod,
            namespace,
        })
    }
}
