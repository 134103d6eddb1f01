//! Names of containers and pods, from the files that their runtimes write.
//!
//! All paths are below directories that only root chooses. Who may start containers chooses the names, but not those of
//! other containers. A runtime writes these files before it makes the container's cgroup.

use crate::lookup::object::Fault;
use record::ContainerNames;
use serde_json::Value;

/// Largest file that is read, in bytes: lists of Podman have about a kilobyte for each container.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;
/// Longest name that is passed on, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Directory whose entries are `NAMESPACE_NAME_UID` of each pod (kubelet).
const PODS: &str = "/var/log/pods";
/// Number of hexadecimal digits of a container's id.
const ID_DIGITS: usize = 64;

/// Access to the files of runtimes.
pub(crate) trait Files {
    /// The contents of a file, up to [`FILE_BYTES_MAX`].
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Fault>;

    /// The names in a directory.
    fn list(&mut self, path: &str) -> Result<Vec<Vec<u8>>, Fault>;
}

/// The form of a file that has names of a container.
#[derive(Clone, Copy)]
enum Form {
    /// Docker's own.
    Docker,
    /// The specification that the low-level runtime is given, with annotations.
    Oci,
    /// A list of containers/storage: Podman's and CRI-O's.
    Storage,
}

/// The files, with `ID` for the id of the container. The first that names it wins; later ones add what it lacks.
const PLACES: [(&str, Form); 11] = [
    ("/var/lib/docker/containers/ID/config.v2.json", Form::Docker),
    (
        "/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        Form::Oci,
    ),
    (
        "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        Form::Oci,
    ),
    (
        "/run/containerd/io.containerd.runtime.v2.task/default/ID/config.json",
        Form::Oci,
    ),
    (
        "/run/containers/storage/overlay-containers/ID/userdata/config.json",
        Form::Oci,
    ),
    (
        "/var/lib/containers/storage/overlay-containers/ID/userdata/config.json",
        Form::Oci,
    ),
    (
        "/var/lib/containers/storage/overlay-containers/containers.json",
        Form::Storage,
    ),
    (
        "/var/lib/containers/storage/overlay-containers/volatile-containers.json",
        Form::Storage,
    ),
    (
        "/run/containers/storage/overlay-containers/volatile-containers.json",
        Form::Storage,
    ),
    (
        "/var/lib/containers/storage/vfs-containers/containers.json",
        Form::Storage,
    ),
    (
        "/var/lib/containers/storage/vfs-containers/volatile-containers.json",
        Form::Storage,
    ),
];

/// Annotations and labels with the name of the container, of its image, of its pod, and of the pod's namespace: those of
/// Kubernetes under CRI-O and Docker, of containerd's CRI, and of nerdctl.
const KEYS: [&[&str]; 4] = [
    &[
        "io.kubernetes.container.name",
        "io.kubernetes.cri.container-name",
        "nerdctl/name",
    ],
    &[
        "io.kubernetes.cri-o.ImageName",
        "io.kubernetes.cri.image-name",
    ],
    &["io.kubernetes.pod.name", "io.kubernetes.cri.sandbox-name"],
    &[
        "io.kubernetes.pod.namespace",
        "io.kubernetes.cri.sandbox-namespace",
    ],
];

/// Finds the names of the container with this id, and of the pod with this uid, if that is not empty.
///
/// # Errors
/// No file names it, or nothing could be read without a wait.
pub(crate) fn names(id: &str, pod: &str, files: &mut dyn Files) -> Result<ContainerNames, Fault> {
    let mut names = ContainerNames::default();
    let mut fault = Fault::Missing;
    if is_id(id) {
        for (place, form) in PLACES {
            match files.read(&place.replace("ID", id)) {
                Ok(bytes) => add(&mut names, form, &bytes, id),
                Err(Fault::NotNow) => fault = Fault::NotNow,
                Err(Fault::Missing | Fault::Denied) => {}
            }
            if names.container.is_some() && names.image.is_some() {
                break;
            }
        }
    }

    if names.pod.is_none() && is_uid(pod) {
        match files.list(PODS) {
            Ok(entries) => add_pod(&mut names, &entries, pod),
            Err(Fault::NotNow) => fault = Fault::NotNow,
            Err(Fault::Missing | Fault::Denied) => {}
        }
    }

    if names == ContainerNames::default() {
        Err(fault)
    } else {
        Ok(names)
    }
}

fn is_id(id: &str) -> bool {
    id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uid(uid: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    (32..=36).contains(&uid.len()) && uid.bytes().all(is_part)
}

/// Adds what a file says and `names` lack. What is not of the form says nothing.
fn add(names: &mut ContainerNames, form: Form, bytes: &[u8], id: &str) {
    let Ok(file) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };

    let found = match form {
        Form::Docker => {
            let config = &file["Config"];
            let [container, image, pod, namespace] = annotated(&config["Labels"]);
            let own = [text(&file["Name"]), text(&config["Image"])];
            let [own_name, own_image] = own;
            [container.or(own_name), image.or(own_image), pod, namespace]
        }
        Form::Oci => annotated(&file["annotations"]),
        Form::Storage => {
            let mut all = file.as_array().into_iter().flatten();
            let Some(one) = all.find(|one| one["id"] == id) else {
                return;
            };
            let metadata = one["metadata"].as_str();
            let metadata = metadata.and_then(|text| serde_json::from_str(text).ok());
            let metadata: Value = metadata.unwrap_or_default();
            let name = text(&metadata["name"]).or(text(&one["names"][0]));
            [name, text(&metadata["image-name"]), None, None]
        }
    };

    let [container, image, pod, namespace] = found.map(usable);
    // Docker puts a slash before names.
    let container = container.map(|name| match name.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None => name,
    });
    put(&mut names.container, container);
    put(&mut names.image, image);
    put(&mut names.pod, pod);

    put(&mut names.namespace, namespace);
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn annotated(by_key: &Value) -> [Option<String>; 4] {
    KEYS.map(|keys| keys.iter().find_map(|key| text(&by_key[*key])))
}

fn usable(text: Option<String>) -> Option<String> {
    text.filter(|text| (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains('\0'))
}

fn put(to: &mut Option<String>, from: Option<String>) {
    if to.is_none() {
        *to = from.filter(|name| !name.is_empty());
    }
}

/// Adds name and namespace of a pod from the directory of its logs.
fn add_pod(names: &mut ContainerNames, entries: &[Vec<u8>], uid: &str) {
    let of_pod = |entry: &Vec<u8>| {
        let entry = std::str::from_utf8(entry).ok()?;
        let rest = entry.strip_suffix(uid)?.strip_suffix('_')?;
        let (namespace, pod) = rest.split_once('_')?;
        Some((namespace.to_owned(), pod.to_owned()))
    };
    if let Some((namespace, pod)) = entries.iter().find_map(of_pod) {
        names.namespace = usable(Some(namespace));
        names.pod = usable(Some(pod));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ID: &str = "1e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55";
    const UID: &str = "01b4b887-7635-4346-9c20-58a294bbb034";

    #[derive(Default)]
    struct Known(BTreeMap<String, String>);

    impl Known {
        fn with(place: &str, text: &str) -> Known {
            Known(BTreeMap::from([(
                place.replace("ID", ID),
                text.replace("ID", ID),
            )]))
        }
    }

    impl Files for Known {
        fn read(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
            let text = self.0.get(path).ok_or(Fault::Missing)?;
            Ok(text.clone().into_bytes())
        }

        fn list(&mut self, path: &str) -> Result<Vec<Vec<u8>>, Fault> {
            let text = self.0.get(path).ok_or(Fault::Missing)?;
            Ok(text
                .split(' ')
                .map(|name| name.as_bytes().to_vec())
                .collect())
        }
    }

    fn found(mut files: Known, pod: &str) -> [Option<String>; 4] {
        let names = names(ID, pod, &mut files).unwrap_or_default();
        [names.container, names.image, names.pod, names.namespace]
    }

    fn of(texts: [&str; 4]) -> [Option<String>; 4] {
        texts.map(|text| (!text.is_empty()).then(|| text.to_owned()))
    }

    #[test]
    fn each_runtime_s_file_names_its_container() {
        let docker =
            r#"{"ID":"ID","Name":"/web","Config":{"Image":"nginx:1.27","Labels":{"a":"b"}}}"#;
        let of_pod = r#"{"Name":"/k8s_coredns_x","Config":{"Image":"sha256:1","Labels":
            {"io.kubernetes.container.name":"coredns","io.kubernetes.pod.name":"coredns-1",
             "io.kubernetes.pod.namespace":"kube-system"}}}"#;
        let containerd = r#"{"ociVersion":"1.1.0","annotations":{
            "io.kubernetes.cri.container-name":"operator","io.kubernetes.cri.image-name":"quay.io/o:1",
            "io.kubernetes.cri.sandbox-name":"operator-65","io.kubernetes.cri.sandbox-namespace":"ops"}}"#;
        let crio = r#"{"annotations":{"io.kubernetes.container.name":"coredns",
            "io.kubernetes.cri-o.ImageName":"k8s.gcr.io/coredns:v1","io.kubernetes.pod.name":"coredns-6d",
            "io.kubernetes.pod.namespace":"kube-system"}}"#;
        let podman = r#"[{"id":"other","names":["x"],"metadata":"{}"},
            {"id":"ID","names":["db"],"metadata":"{\"image-name\":\"docker.io/library/postgres:17\",\"name\":\"db\"}"}]"#;
        let cases = [
            (PLACES[0].0, docker, ["web", "nginx:1.27", "", ""]),
            (
                PLACES[0].0,
                of_pod,
                ["coredns", "sha256:1", "coredns-1", "kube-system"],
            ),
            (
                PLACES[1].0,
                containerd,
                ["operator", "quay.io/o:1", "operator-65", "ops"],
            ),
            (
                PLACES[4].0,
                crio,
                [
                    "coredns",
                    "k8s.gcr.io/coredns:v1",
                    "coredns-6d",
                    "kube-system",
                ],
            ),
            (
                PLACES[7].0,
                podman,
                ["db", "docker.io/library/postgres:17", "", ""],
            ),
        ];
        for (place, text, expected) in cases {
            assert_eq!(found(Known::with(place, text), ""), of(expected), "{place}");
        }
    }

    #[test]
    fn what_is_no_such_file_or_id_names_nothing() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"annotations\":7}",
            "[{\"id\":7}]",
            "null",
        ] {
            for (place, _) in PLACES {
                assert_eq!(
                    found(Known::with(place, text), ""),
                    of([""; 4]),
                    "{place} {text}"
                );
            }
        }
        let long = format!(
            "{{\"Name\":\"/{}\",\"Config\":{{\"Image\":\"\"}}}}",
            "n".repeat(600)
        );
        assert_eq!(found(Known::with(PLACES[0].0, &long), ""), of([""; 4]));
        let mut files = Known::default();
        let outside = format!("{}/../x", &ID[..58]);
        for id in ["", "../../../../etc/passwd", &ID[1..], &outside] {
            assert!(names(id, "", &mut files).is_err(), "{id}");
        }
    }

    #[test]
    fn a_pod_is_named_by_the_directory_of_its_logs() {
        let logs = format!("other_web-1_11111111-7635-4346-9c20-58a294bbb034 shop_web-2_{UID}");
        let files = || Known(BTreeMap::from([(PODS.to_owned(), logs.clone())]));
        assert_eq!(found(files(), UID), of(["", "", "web-2", "shop"]));
        assert_eq!(found(files(), ""), of([""; 4]));
        assert_eq!(found(files(), "b034"), of([""; 4]));
    }
}
