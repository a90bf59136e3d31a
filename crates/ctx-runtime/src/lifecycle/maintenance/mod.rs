//! Keeping the sessions of an agent few, young and small.
//!
//! ```text
//! too old, too many  -->  archived in memory  -->  out of sessions.json  -->  <file>.deleted.<time>
//! too much disk      -->  archived transcripts, oldest first  -->  removed
//! ```
//!
//! Each step leaves something whole, whenever it is cut short: a transcript without an entry is
//! complete, and so is one that was archived and not put aside. A session that is open is not
//! touched, and nothing is removed that was not archived before: what memory did not take in stays on
//! disk, and where there is no memory a transcript that was just put aside stays until the next run.

mod archive;
mod disk;
mod entries;
mod folder;
mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ctx_core::{Result, Timestamp};
use ctx_engine_registry::Config;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use ctx_session::store::SessionStore;

use super::{Maintenance, SessionConfig};
use crate::AgentMemory;
use crate::subagents::SubagentConfig;
use archive::Archive;
use folder::Folder;

pub use report::{Act, Kept, Maintained, MaintenanceReport, Why};

/// Hears how far it is: what is done, and what there is to do.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// How sessions are maintained.
pub(crate) struct Run<'a> {
    pub(crate) home: &'a Home,
    pub(crate) agent: &'a FileId,
    pub(crate) limits: Maintenance,
    /// After how many milliseconds sessions of subagents go.
    pub(crate) subagents: Option<i64>,
    pub(crate) archive: Archive,
    pub(crate) now: Timestamp,
    pub(crate) dry_run: bool,
    /// Ends it after the session that it is at.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Maintains the sessions of an agent, as `session.maintenance` says, whatever its mode. With
/// `dry_run` nothing is changed. `progress` hears how many of the sessions that go are gone.
///
/// # Errors
///
/// [`ErrorKind::Config`](ctx_core::ErrorKind::Config), and if the store or the folder of sessions
/// cannot be read. What goes wrong with one session is in the report.
pub fn maintain(
    home: &Home,
    config: &Config,
    agent: &FileId,
    now: Timestamp,
    dry_run: bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<MaintenanceReport> {
    Run::of(home, config, agent, None, now)?.dry(dry_run).run(progress)
}

impl<'a> Run<'a> {
    /// As the configuration says. `memory` is the agent's, where it is open already.
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
            archive: Archive::of(home, config, agent, memory)?,
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

    /// Does it.
    pub(crate) fn run(&self, progress: Progress<'_>) -> Result<MaintenanceReport> {
        let store = SessionStore::at(self.home.sessions_file(self.agent));
        let sessions = store.load()?;
        let mut folder = Folder::of(&self.home.sessions_dir(self.agent))?;
        let mut report = MaintenanceReport {
            agent: self.agent.to_string(),
            dry_run: self.dry_run,
            entries_before: sessions.len(),
            bytes_before: folder.bytes,
            ..MaintenanceReport::default()
        };
        let known = entries::known(self.home, self.agent, &sessions, &mut folder);
        let leaving = plan::leaving(&known, &self.limits, self.subagents, self.now);
        self.let_go(&store, &known, &leaving, &mut folder, &mut report, progress)?;
        self.expire(&mut folder, &mut report);
        self.make_room(&store, &known, &mut folder, &mut report)?;
        report.warnings.extend(self.archive.take_warnings());
        report.entries_after = report.entries_before - report.entries_gone();
        report.bytes_after = folder.bytes;
        Ok(report)
    }
}
