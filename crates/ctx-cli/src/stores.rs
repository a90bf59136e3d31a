//! Where a command stores large texts, the values of an engine, and memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{BlobStore, Entry, MemoryStore, Store};
use ctx_runtime::MemoryLocation;
use ctx_session::key::FileId;
use ctx_session::{FileBlobs, FileStore, Home, NoBlobs, Transcript, TransientStore};
use tokio::time::timeout;

use crate::args::Fit;
use crate::out::Out;
use crate::selection;
use crate::setup;

/// Where large texts and an engine's values are stored.
pub(crate) struct Keeping {
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: MemoryLocation,
    /// The folder of workspace indexes; without it none is searched.
    pub(crate) workspaces: Option<PathBuf>,
}

impl Keeping {
    /// Starts empty and keeps nothing: for replays of recorded sessions.
    pub(crate) fn nothing() -> Self {
        Self {
            blobs: Arc::<NoBlobs>::default(),
            store: Arc::<TransientStore>::default(),
            memory: MemoryLocation::InProcess,
            workspaces: None,
        }
    }

    /// Opens the engine values and the memory of the session's agent; both are written only if
    /// `lasts`. Engines identify a session by its id, so the values of a session without an id are
    /// not kept. Memory identifies such a session by its file.
    pub(crate) fn values(fit: &Fit, session: &Path, transcript: &Transcript, lasts: bool) -> Self {
        let Ok(home) = Home::from_env() else { return Self::nothing() };
        let agent = agent_of(fit, session);
        let store: Arc<dyn Store> = match transcript.header.id {
            Some(_) => Arc::new(FileStore::at(home.store_dir(&agent))),
            None => Arc::<TransientStore>::default(),
        };
        let memory = home.memory_dir(&agent);
        match lasts {
            true => Self { store, memory: MemoryLocation::Folder(memory), ..Self::nothing() },
            false => Self {
                store: Arc::new(TransientStore::over(store)),
                memory: MemoryLocation::ReadOnly(memory),
                ..Self::nothing()
            },
        }
    }

    /// Adds the files of the agent's workspace. Only for current requests, as the workspace was
    /// different at the time of past ones.
    pub(crate) fn with_workspace(self, home: &Home, fit: &Fit, session: &Path) -> Self {
        Self { workspaces: Some(home.workspaces_dir(&agent_of(fit, session))), ..self }
    }

    /// Stores large texts in files.
    pub(crate) fn with_files(self, home: &Home, fit: &Fit, session: &Path) -> Self {
        let folder = home.tool_results_dir(&agent_of(fit, session));
        Self { blobs: Arc::new(FileBlobs::at(folder)), ..self }
    }
}

/// Returns the agent of a session.
fn agent_of(fit: &Fit, session: &Path) -> FileId {
    let agent = selection::agent(fit, session).and_then(|agent| FileId::new(agent).ok());
    agent.unwrap_or_else(FileId::main)
}

/// How long a command waits for missing vectors. The next command computes the rest.
const VECTORS: Duration = Duration::from_secs(30);

/// How long a command waits for a model that extracts facts.
const FACTS: Duration = Duration::from_secs(120);

/// Why messages left the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// They did not fit into a request.
    Request,
    /// A summary replaced them.
    Compaction,
}

/// Archives messages that left the context, if the session has a memory, and waits until they are
/// on disk. Then runs memory maintenance within time limits, because the command ends afterwards. A
/// failure causes only a warning: the messages are still in the transcript.
pub(crate) fn archive(
    memory: Option<&dyn MemoryStore>,
    leaving: &[Arc<Entry>],
    left: Left,
    out: &Out,
) {
    let Some(memory) = memory else { return };
    let archived = memory.archive(leaving).map_err(Into::into);
    if let Err(error) = archived.and_then(|()| setup::block_on(memory.flush())) {
        out.warn(format!("messages that left the context were not archived: {error}"));
    }
    let maintained = async {
        let mut warnings = timeout(VECTORS, memory.maintain()).await.unwrap_or_default();
        if left == Left::Compaction {
            warnings.extend(timeout(FACTS, memory.extract_facts()).await.unwrap_or_default());
        }
        Ok(warnings)
    };
    let waiting = out.waiting("updating memory");
    let warnings = setup::block_on(maintained);
    waiting.finish_and_clear();
    match warnings {
        Ok(warnings) => warnings.iter().for_each(|warning| out.warn(warning)),
        Err(error) => out.warn(format!("memory maintenance failed: {error}")),
    }
}
