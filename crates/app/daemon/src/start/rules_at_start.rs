//! The rules that a start puts in force, where some of the files cannot be: auditd.conf's rules_error.

use crate::pipeline::kernel_records::KernelRefusal;
use crate::protocol::{LeftOut, RulesInForce, RulesOrigin};
use crate::start::good_rules::{self, Good, GoodRules};
use crate::start::rule_files;
use crate::start::settings::Settings;
use crate::stderr::{reasons, say};
use anyhow::{anyhow, Result};
use compose::Generation;
use conf::RulesError;
use plan::tables::TooLarge;
use rules::{Gathered, Rule, RuleError, RuleSet, RulesFile, SystemHost};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rules that can be put in force.
pub(crate) struct Chosen {
    /// The rules and settings.
    pub(crate) set: RuleSet,
    /// The plan of the rules.
    pub(crate) generation: Arc<Generation>,
    /// Their origin, and what is left out.
    pub(crate) in_force: RulesInForce,
    /// The files that they are from, if all of their rules can be put in force.
    files: Option<Vec<RulesFile>>,
}

/// Rules that are left out one by one because tables are too small, before all further rules are.
const SINGLE_MAX: usize = 16;

/// Chooses the rules for a start, in this order: those of the files, if all is right; the rules that were last in force
/// without an error; the lines of the files that are right. Errors are printed.
///
/// # Errors
/// The files have errors, and the configuration wants no others (`rules_error = refuse`).
pub(crate) fn choose(settings: &Settings, is_kernel: bool) -> Result<Chosen> {
    let chosen = first_possible(settings, is_kernel)?;
    rule_files::report_settings(&chosen.set.settings, is_kernel);
    Ok(chosen)
}

fn first_possible(settings: &Settings, is_kernel: bool) -> Result<Chosen> {
    let sources = &settings.sources;
    let found = rule_files::gather(&sources.rules);
    let good = sources.good.read();
    let suspects = match &good {
        Ok(Some(good)) => {
            say_gone(&found, good);
            suspects(&sources.rules, &found, good)
        }
        _ => Vec::new(),
    };
    let mut left_out: Vec<LeftOut> = unread(&found)
        .chain(found.wrong.iter().map(wrong))
        .chain(suspects.iter().cloned())
        .collect();

    if left_out.is_empty() {
        match settings.generation(found.set.rules.clone(), is_kernel, 1) {
            Ok(generation) => return Ok(all_of(found, generation)),
            Err(error) if sources.rules_error(&settings.config) == RulesError::Refuse => {
                return Err(error)
            }
            // The rules that do not fit are named below.
            Err(error) => say!("tarsier: {}", reasons(&error)),
        }
    }
    // From here on something is wrong: what a start does then is the administrator's choice.
    match sources.rules_error(&settings.config) {
        RulesError::Refuse => return Err(refusal(found, &suspects)),
        RulesError::Skip => {}
        RulesError::LastGood => match good {
            Ok(Some(good)) => return last_good(good, found, left_out, settings, is_kernel),
            Ok(None) => say!("tarsier: no rules were kept from an earlier start without errors"),
            Err(error) => say!(
                "tarsier: the last good rules cannot be used: {}",
                reasons(&error)
            ),
        },
    }

    let (set, generation, unfit) = fitting(found.set, settings, is_kernel)?;
    left_out.extend(unfit);
    left_out.extend(let_pass(&set));
    Ok(Chosen::of(
        set,
        generation,
        RulesOrigin::GoodLines,
        left_out,
    ))
}

impl Chosen {
    /// Rules that are not those of the files as a whole.
    pub(crate) fn of(
        set: RuleSet,
        generation: Arc<Generation>,
        origin: RulesOrigin,
        left_out: Vec<LeftOut>,
    ) -> Chosen {
        Chosen {
            in_force: in_force(&set, origin, left_out),
            set,
            generation,
            files: None,
        }
    }

    /// Leaves out a rule that the kernel refuses to take, and plans the others again.
    ///
    /// # Errors
    /// The rule is not one of these, or the configuration wants all of them or none.
    pub(crate) fn without(&mut self, refused: &KernelRefusal, settings: &Settings) -> Result<()> {
        let is_it = |rule: &Rule| rules::to_kernel(rule) == refused.rule;
        let place = self.set.rules.iter().position(is_it);
        let wants_all = settings.sources.rules_error(&settings.config) == RulesError::Refuse;
        let place = match place {
            Some(place) if !wants_all => place,
            _ => return Err(anyhow!("the kernel engine cannot be started: {refused}")),
        };

        let rule = self.set.rules.remove(place);
        let number = self.generation.plan.generation;
        self.generation = settings.generation(self.set.rules.clone(), true, number)?;
        let digest = good_rules::digest(&self.set.rules, &self.set.settings);
        if self.in_force.origin == RulesOrigin::Files {
            self.in_force.origin = RulesOrigin::GoodLines;
        }
        self.in_force.digest = digest;
        self.in_force.leave_out([at(&rule, refused.why.clone())]);
        // A set that lacks a rule is not kept as the last good one.
        self.files = None;
        Ok(())
    }

    /// Keeps rules and settings for a later start, if their files had no error.
    pub(crate) fn keep(&self, settings: &Settings) {
        if let Some(text) = &settings.config_text {
            settings.sources.keep_config(text);
        }
        if let Some(files) = &self.files {
            settings.sources.good.keep(&self.set, files);
        }
    }
}

/// The description of the rules in force, once `set` is.
pub(crate) fn in_force(
    set: &RuleSet,
    origin: RulesOrigin,
    left_out: impl IntoIterator<Item = LeftOut>,
) -> RulesInForce {
    let mut in_force = RulesInForce {
        origin,
        digest: good_rules::digest(&set.rules, &set.settings),
        ..RulesInForce::default()
    };
    in_force.leave_out(left_out);
    in_force
}

/// All rules of the files are in force, but for those that the files themselves leave out.
pub(crate) fn in_force_of_files(set: &RuleSet) -> RulesInForce {
    in_force(set, RulesOrigin::Files, let_pass(set))
}

/// What the files themselves leave out: wrong lines after `-i` or `-c`, and rules before a `-D`.
fn let_pass(set: &RuleSet) -> impl Iterator<Item = LeftOut> + '_ {
    let deleted = set.deleted.iter();
    let deleted = deleted.map(|(rule, by)| at(rule, format!("deleted by -D in {}", by.place())));
    set.skipped.iter().map(wrong).chain(deleted)
}

/// Requests have replaced the rules: what the files have is no matter any more.
pub(crate) fn in_force_of_requests(rules: &[Rule]) -> RulesInForce {
    let set = RuleSet {
        rules: rules.to_vec(),
        ..RuleSet::default()
    };
    in_force(&set, RulesOrigin::Requests, [])
}

fn all_of(found: Gathered, generation: Arc<Generation>) -> Chosen {
    Chosen {
        in_force: in_force_of_files(&found.set),
        set: found.set,
        generation,
        files: Some(found.files),
    }
}

/// The last good rules, and what the files have besides.
fn last_good(
    good: Good,
    found: Gathered,
    mut left_out: Vec<LeftOut>,
    settings: &Settings,
    is_kernel: bool,
) -> Result<Chosen> {
    let set = RuleSet {
        rules: good.rules,
        settings: good.settings,
        ..RuleSet::default()
    };
    let (set, generation, unfit) = fitting(set, settings, is_kernel)?;
    left_out.extend(unfit);
    let is_new = |rule: &&Rule| !set.rules.iter().any(|known| known.same(rule));
    let new = found.set.rules.iter().filter(is_new);
    left_out.extend(new.map(|rule| {
        let why = "not among the rules that were last in force without an error";
        at(rule, why.to_owned())
    }));
    let mut chosen = Chosen::of(set, generation, RulesOrigin::LastGood, left_out);
    chosen.in_force.good_since_s = Some(good.since_s);

    Ok(chosen)
}

/// The rules that can be planned, their plan, and the other rules.
///
/// # Errors
/// Not even no rules can be planned.
fn fitting(
    mut set: RuleSet,
    settings: &Settings,
    is_kernel: bool,
) -> Result<(RuleSet, Arc<Generation>, Vec<LeftOut>)> {
    let mut left_out = Vec::new();
    // What the kernel would refuse when it is loaded is left out here, each with its own reason.
    if is_kernel {
        set.rules.retain(|rule| {
            let why = unknown_to_kernel(rule);
            left_out.extend(why.iter().map(|why| at(rule, why.clone())));
            why.is_none()
        });
    }

    loop {
        let error = match settings.generation(set.rules.clone(), is_kernel, 1) {
            Ok(generation) => return Ok((set, generation, left_out)),
            Err(error) if set.rules.is_empty() => return Err(error),
            Err(error) => error,
        };
        let too_large = error.downcast_ref::<TooLarge>();
        let why = too_large.map_or_else(|| reasons(&error), TooLarge::to_string);
        let named = too_large.and_then(TooLarge::rule).map(|rule| rule as usize);
        let named = named.filter(|&place| place < set.rules.len());
        let gone = match named {
            Some(place) if left_out.len() < SINGLE_MAX => place..place + 1,
            Some(place) => place..set.rules.len(),
            // The rules together are too large. Each step halves them, so that there is an end.
            None => set.rules.len() / 2..set.rules.len(),
        };
        let gone = set.rules.drain(gone);
        left_out.extend(gone.map(|rule| at(&rule, why.clone())));
    }
}

/// The reason why the kernel's audit cannot match a rule, if that is known before it is asked.
fn unknown_to_kernel(rule: &Rule) -> Option<String> {
    if plan::asks_own(rule) {
        return Some(
            "the kernel's audit knows no units, containers, labels and ancestors".to_owned(),
        );
    }
    let refused = rules::check(rule, Some(&SystemHost)).err();
    refused.map(|refused| refused.reason)
}

/// Reads rules as a start does, and returns them with everything that a start would leave out, as far as that is known
/// before they are planned. Errors are printed. `state_dir` has the last good rules, by which files that were cut are
/// known.
pub fn examine_start(paths: &[PathBuf], state_dir: &Path) -> (RuleSet, Vec<LeftOut>) {
    let found = rule_files::gather(paths);
    let cut = match GoodRules::find(state_dir, paths).read() {
        Ok(Some(good)) => suspects(paths, &found, &good),
        Ok(None) => Vec::new(),
        Err(error) => {
            say!(
                "tarsier: the last good rules cannot be used: {}",
                reasons(&error)
            );
            Vec::new()
        }
    };

    let mut left_out: Vec<LeftOut> = unread(&found).collect();
    left_out.extend(found.wrong.iter().map(wrong));
    left_out.extend(cut);
    left_out.extend(let_pass(&found.set));
    (found.set, left_out)
}

/// Prints which files are gone since their rules were in force. Whoever removes a file wants that.
fn say_gone(found: &Gathered, good: &Good) {
    let there = |file: &&RulesFile| found.files.iter().any(|now| now.path == file.path);
    let unread = |file: &&RulesFile| found.unread.iter().any(|now| now.path == file.path);
    let gone = good
        .files
        .iter()
        .filter(|file| !there(file) && !unread(file));
    for file in gone.take(RulesInForce::SHOWN_MAX) {
        let path = file.path.display();
        say!("tarsier: {path} was in force at the last start or reload and is gone");
    }
}

/// Files that were right when they were last in force and seem to have lost something since, as a crash leaves them.
fn suspects(paths: &[PathBuf], found: &Gathered, good: &Good) -> Vec<LeftOut> {
    if found.files.is_empty() && found.unread.is_empty() && !good.rules.is_empty() {
        let count = good.rules.len();
        return paths
            .iter()
            .map(|path| {
                whole(
                    path,
                    format!(
                        "no *.rules file is there, and {count} rules were last in force; if none \
                         are wanted, put a file with -D there"
                    ),
                )
            })
            .collect();
    }
    let pairs = found.files.iter().filter_map(|file| {
        let mut before = good.files.iter();
        Some((file, before.find(|before| before.path == file.path)?))
    });
    pairs
        .filter_map(|(file, before)| cut(file, before))
        .collect()
}

/// The fault of a file that is empty, or ends within a line that was longer.
fn cut(file: &RulesFile, before: &RulesFile) -> Option<LeftOut> {
    let (len, was) = (file.text.len(), before.text.len());
    if file.text.is_empty() && was > 0 {
        let why = format!(
            "the file is empty, and had {was} bytes when it was last in force; if that is meant, \
             remove it"
        );
        return Some(whole(&file.path, why));
    }
    // A file that was edited differs before its end; one that a crash has cut does not.
    let rest = before.text.strip_prefix(file.text.as_slice())?;
    let ends_line = file.text.ends_with(b"\n") || rest.first().is_none_or(|&byte| byte == b'\n');
    (!ends_line).then(|| {
        let why = format!(
            "the file ends within a line after {len} bytes, and had {was} when it was last in force"
        );
        whole(&file.path, why)
    })
}

fn unread(found: &Gathered) -> impl Iterator<Item = LeftOut> + '_ {
    let unread = found.unread.iter();
    unread.map(|unread| whole(&unread.path, unread.error.to_string()))
}

fn whole(path: &Path, why: String) -> LeftOut {
    LeftOut {
        file: path.to_string_lossy().into_owned(),
        line: 0,
        why,
        is_setting: false,
    }
}

fn wrong(error: &RuleError) -> LeftOut {
    LeftOut {
        file: error.file().to_owned(),
        line: error.line(),
        why: error.message.clone(),
        is_setting: false,
    }
}

fn at(rule: &Rule, why: String) -> LeftOut {
    LeftOut {
        file: rule.source.file.clone(),
        line: rule.source.line,
        why,
        is_setting: false,
    }
}

fn refusal(found: Gathered, suspects: &[LeftOut]) -> anyhow::Error {
    match (rule_files::complete(found), suspects.first()) {
        (Err(error), _) => error,
        (Ok(_), Some(suspect)) => anyhow!("{suspect}"),
        (Ok(_), None) => anyhow!("the rules cannot be put in force"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn file(text: &str) -> RulesFile {
        RulesFile {
            path: PathBuf::from("/etc/audit/rules.d/a.rules"),
            text: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_file_that_ends_within_a_line_that_was_longer_was_cut() {
        let before = file("-w /etc/passwd -p wa -k identity\n-w /etc/group -k identity\n");
        let why = |text: &str| cut(&file(text), &before).map(|left| left.why);
        assert!(why("").unwrap().contains("is empty"));
        for text in [
            "-w /etc/pass",
            "-w /etc/passwd -p wa -k identity\n-w /etc/group -k ident",
        ] {
            assert!(why(text).unwrap().contains("ends within a line"), "{text}");
        }
        for text in [
            "-w /etc/passwd -p wa -k identity\n-w /etc/group -k identity\n",
            "-w /etc/passwd -p wa -k identity\n",
            "-w /etc/passwd -p wa -k identity",
            "-w /etc/pass -p wa -k other\n",
            "# nothing\n",
        ] {
            assert_eq!(why(text), None, "{text}");
        }
        assert_eq!(cut(&file(""), &file("")), None);
    }
}
