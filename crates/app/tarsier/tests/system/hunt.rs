//! What the kernel's own audit records of random calls under random rules, Tarsier records, too.

use crate::daemon::Setup;
use crate::{machine, programs};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Scenes of a seed that was not tried before.
const SCENES: u32 = 20;

/// Where the programs and results are.
struct Hunt<'s> {
    setup: &'s Setup,
    path: String,
}

impl<'s> Hunt<'s> {
    fn new(setup: &'s Setup) -> Hunt<'s> {
        let mut build = Command::new(programs::checkout().join("scripts/build-hunt"));
        let (hunt, _) = programs::output_of(&mut build);
        let bin = setup.path("bin");
        std::fs::create_dir(&bin).expect("a directory");
        let programs: [(PathBuf, &str); 2] = [
            (hunt.trim().into(), "hunt"),
            (programs::tarsier(), "tarsier"),
        ];
        for (program, name) in programs {
            std::os::unix::fs::symlink(program, bin.join(name)).expect("a link");
        }
        let path = std::env::var("PATH").expect("a path");
        let path = format!("{}:{path}", bin.display());
        Hunt { setup, path }
    }

    /// Tries a seed. Returns what was said of it, and whether no call was missed.
    fn run(&self, seed: u64, scenes: u32) -> (String, bool) {
        let output = Command::new(programs::checkout().join("tests/hunt/run"))
            .arg("tracepoint")
            .arg(self.setup.path("mnt"))
            .args([seed.to_string(), scenes.to_string()])
            .env("PATH", &self.path)
            .current_dir(self.setup.path(""))
            .stdin(Stdio::null())
            .output()
            .expect("tests/hunt/run starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (said, output.status.success())
    }
}

/// `SEED SCENES WHAT` of each line of tests/hunt/seeds.
fn kept_seeds() -> Vec<(u64, u32)> {
    let text = std::fs::read_to_string(programs::checkout().join("tests/hunt/seeds"));
    let text = text.expect("tests/hunt/seeds");
    // What is known to be missed still is for the long form.
    let is_long = std::env::var_os("TARSIER_HUNT_SECONDS").is_some();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| match line.strip_prefix("open ") {
        Some(open) => is_long.then_some(open),
        None => Some(line),
    });
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let seed = words.next()?.parse().ok()?;
        Some((seed, words.next()?.parse().ok()?))
    };
    lines
        .map(|line| parse(line).unwrap_or_else(|| panic!("SEED SCENES WHAT expected, not: {line}")))
        .collect()
}

#[test]
fn what_the_kernel_records_of_random_calls_is_recorded() {
    machine::test("random calls", |setup| {
        let hunt = Hunt::new(setup);
        let mut missed = Vec::new();
        let mut run = |seed, scenes| {
            let (said, is_right) = hunt.run(seed, scenes);
            println!("{}", said.lines().last().unwrap_or_default());
            if !is_right {
                missed.push(said);
            }
        };

        for (seed, scenes) in kept_seeds() {
            run(seed, scenes);
        }

        let seconds = std::env::var("TARSIER_HUNT_SECONDS").ok();
        let seconds = seconds.map_or(0, |text| text.parse().expect("seconds"));
        let since = Instant::now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut seed = now.expect("a time since 1970").as_secs();
        while since.elapsed() < Duration::from_secs(seconds) {
            run(seed, SCENES);
            seed += 1;
        }

        assert!(missed.is_empty(), "{}", missed.join("\n"));
    });
}
