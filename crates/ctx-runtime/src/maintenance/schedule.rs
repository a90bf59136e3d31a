//! Maintenance after a turn, at most once an hour.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_config::Config;
use ctx_core::Timestamp;
use ctx_session::Home;
use ctx_session::key::FileId;
use tokio::task::JoinHandle;

use super::{MaintenanceReport, MaintenanceRun};
use crate::lifecycle::MaintenanceMode;
use crate::memory::AgentMemory;
use crate::sync::locked;

/// Minimum interval between two maintenance runs of an agent.
const INTERVAL: Duration = Duration::from_secs(3_600);

/// The file in an agent's folder with the time of the last maintenance, for programs that run for
/// less than an hour.
const MARKER_FILE: &str = "maintained-at";

/// Whether maintenance of an agent's sessions is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    No,
    /// An hour has passed since this process did it.
    Again,
    /// This process has not done it yet. Another process may have done it.
    First,
}

/// When the sessions of each agent were last maintained.
#[derive(Default)]
pub(crate) struct MaintenanceSchedule {
    last: Mutex<HashMap<FileId, Duration>>,
    /// The newest run, which may be in progress.
    newest: Mutex<Option<JoinHandle<()>>>,
    /// Whether maintenance was stopped, as the runtime ends.
    stop: Arc<AtomicBool>,
}

impl MaintenanceSchedule {
    /// Whether maintenance of an agent's sessions is due. If so, it is not due again for an hour.
    pub(crate) fn due(&self, agent: &FileId, now: Duration) -> Due {
        let mut last = locked(&self.last);
        let due = match last.get(agent) {
            None => Due::First,
            Some(last) if now.saturating_sub(*last) >= INTERVAL => Due::Again,
            Some(_) => return Due::No,
        };
        last.insert(agent.clone(), now);
        due
    }

    /// Starts maintenance of an agent's sessions in the background, once `closed` is done. The run
    /// keeps no reference to the runtime, which may end meanwhile.
    pub(crate) fn begin(
        &self,
        job: MaintenanceJob,
        closed: impl Future<Output = ()> + Send + 'static,
    ) {
        let span = tracing::info_span!(parent: None, "maintenance", agent = %job.agent);
        let stop = self.stop.clone();
        let work = async move {
            closed.await;
            let run = tokio::task::spawn_blocking(move || span.in_scope(|| job.run(stop)));
            if let Err(error) = run.await {
                tracing::warn!("session maintenance failed: {error}");
            }
        };
        *locked(&self.newest) = Some(tokio::spawn(work));
    }

    /// Waits for the newest run.
    pub(crate) async fn finished(&self) {
        let newest = locked(&self.newest).take();
        if let Some(newest) = newest
            && let Err(error) = newest.await
        {
            tracing::warn!("session maintenance failed: {error}");
        }
    }

    /// Stops the current run after the current session. No further run starts.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for MaintenanceSchedule {
    fn drop(&mut self) {
        // A program that ends waits for its threads, and archiving may take long.
        self.stop();
    }
}

/// A maintenance job.
pub(crate) struct MaintenanceJob {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) agent: FileId,
    pub(crate) memory: Option<AgentMemory>,
    pub(crate) now: Timestamp,
    pub(crate) due: Due,
}

impl MaintenanceJob {
    fn run(self, stop: Arc<AtomicBool>) {
        if stop.load(Ordering::Relaxed) || (self.due == Due::First && self.was_done()) {
            return;
        }
        // Written first: otherwise every short-lived program would start a run that it cannot
        // finish.
        if let Err(error) = self.mark() {
            tracing::warn!("cannot record the time of maintenance: {error}");
        }
        let Self { home, config, agent, memory, now, due: _ } = self;
        let done = MaintenanceRun::of(&home, &config, &agent, memory, now).and_then(|run| {
            let warn = run.limits.mode == MaintenanceMode::Warn;
            run.dry(warn).until(stop).run(&mut |_, _| {})
        });
        match done {
            Ok(report) => log(&report),
            Err(error) => tracing::warn!("session maintenance failed: {error}"),
        }
    }

    fn file(&self) -> PathBuf {
        self.home.agent_dir(&self.agent).join(MARKER_FILE)
    }

    /// Whether another program ran maintenance within the hour. A time in the future is ignored.
    fn was_done(&self) -> bool {
        let read = ctx_disk::read_to_string(self.file()).ok();
        let at = read.and_then(|text| text.trim().parse::<i64>().ok());
        let every = i64::try_from(INTERVAL.as_millis()).unwrap_or(i64::MAX);
        at.is_some_and(|at| at <= self.now.0 && self.now.0.saturating_sub(at) < every)
    }

    fn mark(&self) -> std::io::Result<()> {
        std::fs::write(self.file(), format!("{}\n", self.now.0))
    }
}

fn log(report: &MaintenanceReport) {
    for done in &report.done {
        let (key, act, why) = (done.session_key.as_deref(), done.act.words(), done.why.words());
        tracing::info!(key, file = ?done.file, dry_run = report.dry_run, why, "{act}");
    }
    for kept in &report.kept {
        let (key, why) = (kept.session_key.as_deref(), kept.why.words());
        tracing::info!(key, file = ?kept.file, why, "kept: {}", kept.because);
    }
    report.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}
