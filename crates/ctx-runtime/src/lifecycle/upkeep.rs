//! Maintenance after a turn, once an hour.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_core::Timestamp;
use ctx_engine_registry::Config;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use tokio::task::JoinHandle;

use super::{MaintenanceMode, MaintenanceReport, Run};
use crate::AgentMemory;
use crate::session::locked;

/// How often the sessions of an agent are looked after at most.
const EVERY: Duration = Duration::from_secs(3_600);

/// When the sessions of each agent were looked after.
#[derive(Default)]
pub(crate) struct Upkeep {
    last: Mutex<HashMap<FileId, Duration>>,
    /// The newest run, which may be under way.
    newest: Mutex<Option<JoinHandle<()>>>,
    /// Whether nobody is left to look after sessions for.
    stop: Arc<AtomicBool>,
}

impl Upkeep {
    /// Whether it is time to look after the sessions of an agent. It is not for another hour then.
    pub(crate) fn is_due(&self, agent: &FileId, now: Duration) -> bool {
        let mut last = locked(&self.last);
        let due = last.get(agent).is_none_or(|last| now.saturating_sub(*last) >= EVERY);
        if due {
            last.insert(agent.clone(), now);
        }
        due
    }

    /// Begins to look after the sessions of an agent, beside everything else, when `closed` is done.
    /// It holds nothing of the runtime, which may end meanwhile.
    pub(crate) fn begin(&self, job: Job, closed: impl Future<Output = ()> + Send + 'static) {
        let span = tracing::info_span!(parent: None, "maintenance", agent = %job.agent);
        let stop = self.stop.clone();
        let work = async move {
            closed.await;
            let run = tokio::task::spawn_blocking(move || span.in_scope(|| job.run(stop)));
            if let Err(error) = run.await {
                tracing::warn!("the sessions were not maintained: {error}");
            }
        };
        *locked(&self.newest) = Some(tokio::spawn(work));
    }

    /// Waits for the newest run.
    #[cfg(test)]
    pub(crate) async fn settled(&self) {
        let newest = locked(&self.newest).take();
        if let Some(newest) = newest {
            newest.await.unwrap();
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        // A program that ends waits for its threads; there may be much to archive.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What is to be looked after.
pub(crate) struct Job {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) agent: FileId,
    pub(crate) memory: Option<AgentMemory>,
    pub(crate) now: Timestamp,
}

impl Job {
    fn run(self, stop: Arc<AtomicBool>) {
        let Self { home, config, agent, memory, now } = self;
        let done = Run::of(&home, &config, &agent, memory, now).and_then(|run| {
            let warn = run.limits.mode == MaintenanceMode::Warn;
            run.dry(warn).until(stop).run(&mut |_, _| {})
        });
        match done {
            Ok(report) => say(&report),
            Err(error) => tracing::warn!("the sessions were not maintained: {error}"),
        }
    }
}

fn say(report: &MaintenanceReport) {
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
