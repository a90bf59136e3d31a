//! Maintenance after a turn, once an hour.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use ctx_core::Timestamp;
use ctx_engine_registry::Config;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use tokio::task::JoinHandle;

use super::{MaintenanceMode, Run};
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

    /// Begins to look after the sessions of an agent, beside everything else. It holds nothing of
    /// the runtime, which may end meanwhile.
    pub(crate) fn begin(
        &self,
        home: Home,
        config: Config,
        agent: FileId,
        memory: Option<AgentMemory>,
        now: Timestamp,
    ) {
        let span = tracing::info_span!(parent: None, "maintenance", %agent);
        let work = move || span.in_scope(|| maintain(&home, &config, &agent, memory, now));
        *locked(&self.newest) = Some(tokio::task::spawn_blocking(work));
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

fn maintain(
    home: &Home,
    config: &Config,
    agent: &FileId,
    memory: Option<AgentMemory>,
    now: Timestamp,
) {
    let done = Run::of(home, config, agent, memory, now).and_then(|run| {
        let warn = run.limits.mode == MaintenanceMode::Warn;
        run.dry(warn).run(&mut |_, _| {})
    });
    let report = match done {
        Ok(report) => report,
        Err(error) => {
            tracing::warn!("the sessions were not maintained: {error}");
            return;
        }
    };
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
