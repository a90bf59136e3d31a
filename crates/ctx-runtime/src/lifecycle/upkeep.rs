//! Maintenance after a turn, once an hour.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
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

/// The file in the folder of an agent that says when its sessions were looked after, for programs that
/// do not run for an hour.
const MARK: &str = "maintained-at";

/// Whether it is time to look after the sessions of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    No,
    /// An hour has passed since this program did it.
    Again,
    /// As far as this program knows. Another may have done it just now.
    First,
}

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
    pub(crate) fn due(&self, agent: &FileId, now: Duration) -> Due {
        let mut last = locked(&self.last);
        let due = match last.get(agent) {
            None => Due::First,
            Some(last) if now.saturating_sub(*last) >= EVERY => Due::Again,
            Some(_) => return Due::No,
        };
        last.insert(agent.clone(), now);
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
    pub(crate) async fn settled(&self) {
        let newest = locked(&self.newest).take();
        if let Some(newest) = newest
            && let Err(error) = newest.await
        {
            tracing::warn!("the sessions were not maintained: {error}");
        }
    }

    /// Ends what is under way, after the session that it is at. There will be no more.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        // A program that ends waits for its threads; there may be much to archive.
        self.stop();
    }
}

/// What is to be looked after.
pub(crate) struct Job {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) agent: FileId,
    pub(crate) memory: Option<AgentMemory>,
    pub(crate) now: Timestamp,
    pub(crate) due: Due,
}

impl Job {
    fn run(self, stop: Arc<AtomicBool>) {
        if stop.load(Ordering::Relaxed) || (self.due == Due::First && self.was_done()) {
            return;
        }
        // Before, not after: what is not done within the life of a program would be begun by each.
        if let Err(error) = self.mark() {
            tracing::warn!("it is not remembered that sessions are maintained: {error}");
        }
        let Self { home, config, agent, memory, now, due: _ } = self;
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

impl Job {
    fn file(&self) -> PathBuf {
        self.home.agent_dir(&self.agent).join(MARK)
    }

    /// Whether another program did it within the hour. A time that is still to come is no time at which
    /// it was done.
    fn was_done(&self) -> bool {
        let read = ctx_disk::read_to_string(self.file()).ok();
        let at = read.and_then(|text| text.trim().parse::<i64>().ok());
        let every = i64::try_from(EVERY.as_millis()).unwrap_or(i64::MAX);
        at.is_some_and(|at| at <= self.now.0 && self.now.0.saturating_sub(at) < every)
    }

    fn mark(&self) -> std::io::Result<()> {
        std::fs::write(self.file(), format!("{}\n", self.now.0))
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
