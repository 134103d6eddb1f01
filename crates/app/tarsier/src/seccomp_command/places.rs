//! Where programs run: containers, pods and units, as processes and cgroups of this machine.

use anyhow::{bail, Result};
use cli::seccomp::LearnArgs;
use seccomp_kernel::calls::{cgroup_root, Scope};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that start containers: what they do themselves does not count.
const RUNTIMES: [&str; 2] = ["runc", "crun"];

/// Whose calls are to be learnt, and how to call it.
pub(super) struct Place {
    pub(super) scope: Scope,
    pub(super) name: String,
    /// A container or pod, by the name that was given.
    named: Option<(String, Naming)>,
}

impl Place {
    /// Whether it may start again in the cgroup that is followed: a unit always, a container until
    /// it is removed, processes never.
    pub(super) fn may_start_again(&self) -> bool {
        let is_known = |(name, naming): &(String, Naming)| !described(name, *naming).is_empty();
        self.scope.cgroup.is_some() && self.named.as_ref().is_none_or(is_known)
    }

    /// Whether it could be followed into its next start, if there were cgroups of version 2.
    pub(super) fn lacks_cgroup(&self) -> bool {
        self.named.is_some() && self.scope.cgroup.is_none()
    }
}

/// The place that the command line names; of a command, only whether it starts a container.
pub(super) fn place(args: &LearnArgs) -> Result<Place> {
    if let Some(unit) = &args.unit {
        return unit_place(unit);
    }
    if let Some(path) = &args.cgroup {
        return Ok(of_cgroup(path, format!("cgroup {path}")));
    }
    if let Some(name) = &args.container {
        return containers(name, Naming::Container);
    }
    if let Some(name) = &args.pod {
        return containers(name, Naming::Pod);
    }
    if !args.pid.is_empty() {
        return processes(&args.pid);
    }

    let first = args.command.first().map(Path::new);
    let name = first
        .and_then(|path| path.file_name())
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let scope = Scope {
        inner_only: RUNTIMES.contains(&name.as_str()),
        ..Scope::default()
    };
    if ["docker", "podman", "nerdctl", "kubectl", "ctr"].contains(&name.as_str()) {
        cli::messages::report!(
            "tarsier: note: {name} lets another process start containers; learn where they run, \
             with --container NAME"
        );
    }

    Ok(Place {
        scope,
        name,
        named: None,
    })
}

fn of_cgroup(path: &str, name: String) -> Place {
    let scope = Scope {
        cgroup: Some(format!("/{}", path.trim_matches('/'))),
        ..Scope::default()
    };
    Place {
        scope,
        name,
        named: None,
    }
}

fn unit_place(unit: &str) -> Result<Place> {
    if cgroup_root().is_none() {
        bail!("--unit: this machine has no cgroups of version 2, by which units are followed");
    }

    let unit = if unit.contains('.') {
        unit.to_owned()
    } else {
        format!("{unit}.service")
    };
    let shown = Command::new("systemctl")
        .args(["show", "-P", "ControlGroup", "--", &unit])
        .stderr(std::process::Stdio::null())
        .output();
    let shown = shown.map(|shown| String::from_utf8_lossy(&shown.stdout).trim().to_owned());
    let path = match shown {
        Ok(path) if path.starts_with('/') => path,
        // A unit that does not run has no cgroup yet.
        _ => format!("/system.slice/{unit}"),
    };
    let name = format!("{unit} ({path})");

    Ok(of_cgroup(&path, name))
}

fn processes(pids: &[u32]) -> Result<Place> {
    for pid in pids {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            bail!("--pid {pid}: no such process");
        }
    }

    let mut found: BTreeSet<u32> = pids.iter().copied().collect();
    with_descendants(&mut found);
    let names: Vec<String> = pids.iter().map(u32::to_string).collect();

    Ok(Place {
        scope: Scope {
            processes: found.into_iter().collect(),
            ..Scope::default()
        },
        name: format!("process {}", names.join(" ")),
        named: None,
    })
}

/// Adds what the processes have started.
fn with_descendants(found: &mut BTreeSet<u32>) {
    let parents: Vec<(u32, u32)> = all_processes()
        .into_iter()
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
            Some((pid, line.trim().parse().ok()?))
        })
        .collect();

    loop {
        let before = found.len();
        let children = parents.iter().filter(|row| found.contains(&row.1));
        let children: Vec<u32> = children.map(|row| row.0).collect();
        found.extend(children);
        if found.len() == before {
            return;
        }
    }
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Container,
    Pod,
}

/// A container that a runtime's files describe.
struct Container {
    id: String,
    /// The first process, where the runtime's file has it.
    pid: Option<u32>,
}

fn containers(name: &str, naming: Naming) -> Result<Place> {
    let mut found = described(name, naming);
    let is_id = naming == Naming::Container
        && name.len() >= 12
        && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if found.is_empty() && is_id {
        found.push(Container {
            id: name.to_owned(),
            pid: None,
        });
    }

    let option = if naming == Naming::Pod {
        "--pod"
    } else {
        "--container"
    };
    if found.is_empty() {
        bail!(
            "{option} {name}: found neither with Podman, Docker, containerd, CRI-O, runc nor crun; \
             give the id, or the first process with --pid"
        );
    }

    let mut processes = BTreeSet::new();

    for container in &found {
        processes.extend(
            container
                .pid
                .filter(|pid| Path::new(&format!("/proc/{pid}")).exists()),
        );
        let listed = all_processes().into_iter().filter(|pid| {
            let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            container.id.len() >= 12 && cgroup.contains(&container.id)
        });
        processes.extend(listed);
    }

    with_descendants(&mut processes);

    // The monitor of a container (conmon, a shim) is not in its namespaces.
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    processes.retain(|pid| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok() != own);
    let Some(&first) = processes.first() else {
        bail!("{option} {name}: no process of it is running; start it, or learn from a log");
    };

    let mut cgroup = v2_cgroup(first);
    if naming == Naming::Pod {
        // The cgroups of a pod's containers are in that of the pod.
        let parent = |path: String| path.rsplit_once('/').map(|parts| parts.0.to_owned());
        cgroup = cgroup.and_then(parent);
    }

    Ok(Place {
        scope: Scope {
            cgroup,
            processes: processes.into_iter().collect(),
            inner_only: true,
        },
        name: format!("{} {name}", option.trim_start_matches('-')),
        named: Some((name.to_owned(), naming)),
    })
}

/// The cgroup of a process, unless it is also ours.
fn v2_cgroup(pid: u32) -> Option<String> {
    let of = |pid: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(path.to_owned())
    };
    let path = of(&pid.to_string())?;
    (path != "/" && of("self").as_ref() != Some(&path)).then_some(path)
}

/// Containers of this name, by the files of the runtimes.
fn described(name: &str, naming: Naming) -> Vec<Container> {
    let mut found = Vec::new();
    if naming == Naming::Container {
        found.extend(podman(name));
        found.extend(docker(name));
        found.extend(low_level(name));
    }
    found.extend(annotated(name, naming));
    found
}

fn json(path: impl AsRef<Path>) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn children(path: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Podman and CRI-O: names in containers/storage.
fn podman(name: &str) -> Vec<Container> {
    let mut stores = vec![PathBuf::from("/var/lib/containers")];
    stores.extend(
        children("/home")
            .iter()
            .map(|home| home.join(".local/share/containers")),
    );
    stores.push(PathBuf::from("/root/.local/share/containers"));
    let rows = stores
        .iter()
        .filter_map(|store| json(store.join("storage/overlay-containers/containers.json")));
    let rows = rows.filter_map(|rows| rows.as_array().cloned()).flatten();
    let named = rows.filter(|row| {
        let names = row["names"].as_array().into_iter().flatten();
        row["id"] == name || names.into_iter().any(|known| known == name)
    });

    named
        .filter_map(|row| {
            Some(Container {
                id: row["id"].as_str()?.to_owned(),
                pid: None,
            })
        })
        .collect()
}

fn docker(name: &str) -> Vec<Container> {
    let configs = children("/var/lib/docker/containers");
    configs
        .iter()
        .filter_map(|directory| json(directory.join("config.v2.json")))
        .filter(|config| config["Name"].as_str().map(|it| it.trim_start_matches('/')) == Some(name))
        .filter_map(|config| {
            Some(Container {
                id: config["ID"].as_str()?.to_owned(),
                pid: config["State"]["Pid"].as_u64().map(|pid| pid as u32),
            })
        })
        .collect()
}

/// runc and crun, whose ids are chosen by those who start containers.
fn low_level(name: &str) -> Vec<Container> {
    if name.contains('/') {
        return Vec::new();
    }

    let files = [
        (format!("/run/runc/{name}/state.json"), "init_process_pid"),
        (format!("/run/crun/{name}/status"), "pid"),
    ];
    let states = files.iter().filter_map(|(path, field)| {
        let pid = json(path)?[*field].as_u64()?;
        Some(Container {
            id: name.to_owned(),
            pid: Some(pid as u32),
        })
    });

    states.collect()
}

/// Kubernetes: annotations in the configurations that containerd and CRI-O give to runtimes.
fn annotated(name: &str, naming: Naming) -> Vec<Container> {
    let mut bundles = children("/run/containerd/io.containerd.runtime.v2.task/k8s.io");
    let stored = children("/run/containers/storage/overlay-containers");
    bundles.extend(stored.iter().map(|path| path.join("userdata")));
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let any = |annotations: &Value, keys: [&str; 2], wanted: &str| {
        keys.iter().any(|key| annotations[key] == wanted)
    };
    let matches = |annotations: &Value| {
        let names = match naming {
            Naming::Container => [
                "io.kubernetes.cri.container-name",
                "io.kubernetes.container.name",
            ],
            Naming::Pod => ["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"],
        };
        let spaces = [
            "io.kubernetes.cri.sandbox-namespace",
            "io.kubernetes.pod.namespace",
        ];
        any(annotations, names, name)
            && namespace.is_none_or(|namespace| any(annotations, spaces, namespace))
    };

    let found = bundles.iter().filter_map(|bundle| {
        let config = json(bundle.join("config.json"))?;
        if !matches(&config["annotations"]) {
            return None;
        }
        let named = if bundle.ends_with("userdata") {
            bundle.parent()?
        } else {
            bundle
        };
        Some(Container {
            id: named.file_name()?.to_string_lossy().into_owned(),
            pid: None,
        })
    });

    found.collect()
}
