//! Limits the number, age and size of an agent's sessions.
//!
//! ```text
//! too old, too many --> archived in memory --> out of sessions.json --> <file>.deleted.<time>
//! too much disk     --> archived transcripts, oldest first --> removed
//! ```
//!
//! Every step can be interrupted: the transcript stays complete if its entry is removed, and if it
//! is archived in memory but not renamed. Open sessions are not touched. Nothing is removed before
//! it is archived: messages that memory did not accept stay on disk. Without memory, a transcript
//! that was just renamed stays until the next run.

mod archive;
mod disk;
mod entries;
mod folder;
mod plan;
mod report;
mod schedule;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ctx_config::Config;
use ctx_core::{Result, Timestamp};
use ctx_session::key::FileId;
use ctx_session::{Home, SessionStore};

use crate::lifecycle::{Maintenance, SessionConfig, SubagentConfig};
use crate::memory::AgentMemory;
use archive::MemoryArchive;
use folder::SessionsFolder;

pub use report::{Action, KeptSession, MaintainedSession, MaintenanceReport, Reason};

pub(crate) use schedule::{Due, MaintenanceJob, MaintenanceSchedule};

/// Reports the progress: the number of sessions done, and the total.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// One run of maintenance.
pub(crate) struct MaintenanceRun<'a> {
    pub(crate) home: &'a Home,
    pub(crate) agent: &'a FileId,
    pub(crate) limits: Maintenance,
    /// Age in milliseconds at which sessions of subagents are removed.
    pub(crate) subagents: Option<i64>,
    pub(crate) archive: MemoryArchive,
    pub(crate) now: Timestamp,
    pub(crate) dry_run: bool,
    /// Stops the run after the current session.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Maintains an agent's sessions as `session.maintenance` says, but ignores its `mode`. With
/// `dry_run` nothing is changed. `progress` receives the number of sessions removed so far.
///
/// # Errors
///
/// [`ErrorKind::Config`](ctx_core::ErrorKind::Config), and if the store or the folder of sessions
/// cannot be read. Errors of single sessions are in the report.
pub fn maintain(
    home: &Home,
    config: &Config,
    agent: &FileId,
    now: Timestamp,
    dry_run: bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<MaintenanceReport> {
    MaintenanceRun::of(home, config, agent, None, now)?.dry(dry_run).run(progress)
}

impl<'a> MaintenanceRun<'a> {
    /// Creates a run from the configuration. `memory` is the agent's, if it is already open.
    pub(crate) fn of(
        home: &'a Home,
        config: &Config,
        agent: &'a FileId,
        memory: Option<AgentMemory>,
        now: Timestamp,
    ) -> Result<Self> {
        let session: SessionConfig = config.section()?;
        let subagents: SubagentConfig = config.section()?;
        Ok(Self {
            home,
            agent,
            limits: session.maintenance,
            subagents: subagents.archive_after(),
            archive: MemoryArchive::of(home, config, agent, memory)?,
            now,
            dry_run: false,
            stop: Arc::default(),
        })
    }

    pub(crate) fn dry(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    pub(crate) fn until(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs the maintenance.
    pub(crate) fn run(&self, progress: Progress<'_>) -> Result<MaintenanceReport> {
        let store = SessionStore::at(self.home.sessions_file(self.agent));
        let sessions = store.load()?;
        let mut folder = SessionsFolder::of(&self.home.sessions_dir(self.agent))?;
        let mut report = MaintenanceReport {
            agent: self.agent.to_string(),
            dry_run: self.dry_run,
            entries_before: sessions.all().count(),
            bytes_before: folder.bytes,
            ..MaintenanceReport::default()
        };
        let known = entries::known(self.home, self.agent, &sessions, &mut folder);
        let leaving = plan::leaving(&known, &self.limits, self.subagents, self.now);
        self.remove_sessions(&store, &known, &leaving, &mut folder, &mut report, progress)?;
        self.expire(&mut folder, &mut report);
        self.make_room(&store, &known, &mut folder, &mut report)?;
        report.warnings.extend(self.archive.take_warnings());
        report.entries_after = report.entries_before - report.entries_gone();
        report.bytes_after = folder.bytes;
        Ok(report)
    }
}
