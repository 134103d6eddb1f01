//! Answers to `tarsier status`.

use crate::account::losses;
use crate::account::maker_costs::{MakerCosts, OTHERS};
use crate::event_loop::recording::Recording;
use crate::pipeline::engine::Engine;
use crate::protocol::{self, MakerCost, MakerKind, MakerOrder, RuleCost, SpawnerStatus, Status};
use plan::Plan;

/// The content of `tarsier status`.
pub(crate) fn of(recording: &Recording) -> Status {
    let pipeline = &recording.pipeline;
    let (engine, journal) = (pipeline.engine(), pipeline.output().journal());
    let counters = engine.counters();
    let plan = pipeline.plan();
    let (log, totals) = (journal.counters(), pipeline.totals());
    let (kernel, audited) = (pipeline.kernel(), recording.contexts.count());
    let lookups = pipeline.lookups().counts();
    let recorder = pipeline.recorder();
    let (cgroups, processes) = (recorder.cgroup_counts(), recorder.process_counts());

    Status {
        pin_dir: engine.pins().map(|pins| pins.dir().display().to_string()),
        pid: std::process::id(),
        engine: engine.name().to_owned(),
        hook: hook(engine, plan),
        gaps: gaps(plan),
        rules: plan.rules.len(),
        rules_in_force: recording.rules_in_force.clone(),
        generation: plan.generation,
        kernel_records: kernel.is_some(),
        uptime_s: recording.started.elapsed().as_secs(),
        calls_matched: counters.evaluated,
        events_selected: counters.events,
        events_candidate: counters.undecided,
        events_dropped: totals.dropped,
        events_recorded: totals.recorded,
        events_cut: recorder.incomplete.cut,
        events_unsure: recorder.incomplete.unsure,
        labels_missing: recorder.labels_missing(),
        kernel_records_received: kernel.map_or(0, |kernel| kernel.received),
        lost: losses::by_cause(pipeline, &counters),
        lost_by_cpu: counters.lost.iter().map(|cpu| cpu.iter().sum()).collect(),
        lost_by_rule: losses::by_rule(pipeline, &counters),
        lost_by_uid: losses::by_uid(pipeline, &counters),
        suppressed_by_rule: losses::suppressed(pipeline),
        ring_fill_per_mille: engine.fill_per_mille(),
        log_file: journal.path().display().to_string(),
        log_written: recording.settings.config.write_logs,
        log_events: log.written.events,
        log_bytes: log.written.bytes,
        log_suspended: journal.is_suspended(),
        log_syncs: log.syncs,
        calls_slowed: counters.waits,
        waited_ns: counters.waited_ns,
        reader_pause_us: pipeline.longest_pause_ns() / 1000,
        integrity_breaches: recording.integrity.breaches,
        durable_after_us: pipeline.output().durable_after(),
        objects_unanswered: lookups.unanswered,
        events_out_of_time: lookups.out_of_time,
        names_unanswered: lookups.names_unanswered,
        helpers_replaced: lookups.replaced,
        helpers_stuck: lookups.stuck,
        cgroups_known: cgroups.known,
        cgroups_unknown: cgroups.unknown_events,
        cgroups_lost: counters.cgroups_lost,
        containers_unnamed: cgroups.unnamed_containers,
        processes_known: processes.known,
        processes_bytes: processes.bytes,
        ancestors_partial: processes.partial_events,
        processes_lost: counters.processes_lost,
        audited_processes: audited.map(|audited| audited.processes),
        audited_threads: audited.map(|audited| audited.threads),
        plugins: pipeline.output().plugin_statuses(),
        confinement: recording.settings.confinement.status(),
        spawner: recording.settings.launcher.state().map(SpawnerStatus::from),
    }
}

fn gaps(plan: &Plan) -> Vec<String> {
    let gaps = plan.platform.gaps.iter();
    gaps.map(plan::Gap::to_string).collect()
}

/// Names of the hooks that see calls.
fn hook(engine: &Engine, plan: &Plan) -> String {
    match plan.hooks.sys_exit.names() {
        _ if engine.is_kernel() => "the kernel's own audit".to_owned(),
        names if names.is_empty() => "none".to_owned(),
        names => names.join(", "),
    }
}

/// The content of `tarsier status --rules`.
pub(crate) fn rule_costs(recording: &Recording) -> Vec<RuleCost> {
    let pipeline = &recording.pipeline;
    let rules = pipeline.rules();
    if let Some(kernel) = pipeline.kernel_engine() {
        return kernel.costs.table(rules);
    }
    let (counts, _) = pipeline.engine().rule_counts(rules.len());
    pipeline.rule_costs().table(rules, &counts)
}

/// The content of `tarsier status --by`.
///
/// # Errors
/// The engine does not know such makers: why, and what it knows.
pub(crate) fn maker_costs(
    recording: &mut Recording,
    by: MakerKind,
    order: MakerOrder,
    top: usize,
    is_recent: bool,
) -> Result<protocol::MakerCosts, String> {
    if !is_known(recording, by) {
        return Err(format!(
            "--by {}: events of the kernel engine name no cgroup: use --by uid or --by exe, or an eBPF engine",
            by.name()
        ));
    }
    let mut table = counted(recording).table(by, order, top, is_recent);
    if by == MakerKind::Uid && !is_recent {
        add_lost(&mut table, recording);
    }
    Ok(table)
}

/// The makers of events in the metrics, with the kind that they are of.
pub(crate) fn exported_makers(recording: &mut Recording) -> Vec<(MakerKind, Vec<MakerCost>)> {
    let known: Vec<MakerKind> = MakerKind::EVERY
        .into_iter()
        .filter(|by| is_known(recording, *by))
        .collect();
    let costs = counted(recording);
    known
        .into_iter()
        .map(|by| (by, costs.exported(by)))
        .collect()
}

/// Whether the engine's events tell of such makers.
fn is_known(recording: &Recording, by: MakerKind) -> bool {
    let needs_cgroup = matches!(by, MakerKind::Unit | MakerKind::Container);
    !(needs_cgroup && recording.pipeline.is_kernel_engine())
}

/// The counts of the engine's events.
fn counted(recording: &mut Recording) -> &mut MakerCosts {
    let pipeline = &mut recording.pipeline;
    pipeline.maker_costs()
}

/// Adds the losses of each uid. Those of uids without a row are others'.
fn add_lost(table: &mut protocol::MakerCosts, recording: &Recording) {
    let pipeline = &recording.pipeline;
    let mut lost = losses::by_uid(pipeline, &pipeline.engine().counters());
    table.total.lost = Some(lost.values().sum());
    for row in &mut table.rows {
        row.lost = Some(lost.remove(&row.name).unwrap_or(0));
    }

    let left: u64 = lost.values().sum();
    match table.rows.iter_mut().find(|row| row.name == OTHERS) {
        Some(others) => others.lost = Some(left),
        None if left > 0 => table.rows.push(MakerCost {
            name: OTHERS.to_owned(),
            lost: Some(left),
            ..MakerCost::default()
        }),
        None => {}
    }
}
