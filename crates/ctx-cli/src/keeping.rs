//! Where a command leaves what leaves the context, and what an engine keeps for later.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{BlobStore, Entry, MemoryStore, Store};
use ctx_runtime::MemoryAt;
use ctx_session::Transcript;
use ctx_session::blobs::{FileBlobs, MemoryBlobs};
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use ctx_session::values::{FileStore, PassingStore};
use tokio::time::timeout;

use crate::args::Fit;
use crate::out::Out;
use crate::selection;
use crate::setup;

/// Where large texts and an engine's values go.
pub(crate) struct Keeping {
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: MemoryAt,
    /// Where indexes of workspaces are; without it none is searched.
    pub(crate) workspaces: Option<PathBuf>,
}

impl Keeping {
    /// Nothing is there before, and nothing stays: for trials over recorded sessions.
    pub(crate) fn nothing() -> Self {
        Self {
            blobs: Arc::<MemoryBlobs>::default(),
            store: Arc::<PassingStore>::default(),
            memory: MemoryAt::Nowhere,
            workspaces: None,
        }
    }

    /// What an engine kept of this session is there; what it does now stays where `lasts`. Without an
    /// id an engine could not tell the session from others: of what it keeps nothing stays. Memory knows
    /// such a session by its file.
    pub(crate) fn values(fit: &Fit, session: &Path, transcript: &Transcript, lasts: bool) -> Self {
        let Ok(home) = Home::from_env() else { return Self::nothing() };
        let agent = agent_of(fit, session);
        let store: Arc<dyn Store> = match transcript.header().id {
            Some(_) => Arc::new(FileStore::at(home.store_dir(&agent))),
            None => Arc::<PassingStore>::default(),
        };
        let memory = home.memory_dir(&agent);
        match lasts {
            true => Self { store, memory: MemoryAt::Folder(memory), ..Self::nothing() },
            false => Self {
                store: Arc::new(PassingStore::over(store)),
                memory: MemoryAt::ReadOnly(memory),
                ..Self::nothing()
            },
        }
    }

    /// The same, with the files of the agent's workspace. Only for requests that are made now: what
    /// is in the workspace today was not there for those of the past.
    pub(crate) fn with_workspace(self, home: &Home, fit: &Fit, session: &Path) -> Self {
        Self { workspaces: Some(home.workspaces_dir(&agent_of(fit, session))), ..self }
    }

    /// The same, with large texts in files.
    pub(crate) fn with_files(self, home: &Home, fit: &Fit, session: &Path) -> Self {
        let folder = home.tool_results_dir(&agent_of(fit, session));
        Self { blobs: Arc::new(FileBlobs::at(folder)), ..self }
    }
}

/// The agent whose session it is.
fn agent_of(fit: &Fit, session: &Path) -> FileId {
    let agent = selection::agent(fit, session).and_then(|agent| FileId::new(agent).ok());
    agent.unwrap_or_else(FileId::main)
}

/// So long a command waits for vectors that are missing. What is left is made by the next one.
const VECTORS: Duration = Duration::from_secs(30);

/// So long a command waits for a model that looks for facts.
const FACTS: Duration = Duration::from_secs(120);

/// Why messages left the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A request had no room for them.
    Request,
    /// A summary stands for them.
    Compaction,
}

/// Archives what left the context, where the session has a memory, waits until it is on disk, and
/// has it tended: nobody is there to do so once the command is over. A memory that fails costs a
/// warning: the messages are in the transcript still.
pub(crate) fn archive(
    memory: Option<&dyn MemoryStore>,
    leaving: &[Arc<Entry>],
    left: Left,
    out: &Out,
) {
    let Some(memory) = memory else { return };
    let archived = memory.archive(leaving).map_err(Into::into);
    if let Err(error) = archived.and_then(|()| setup::block_on(memory.flush())) {
        out.warn(format!("what left the context was not archived: {error}"));
    }
    let tended = async {
        let mut told = timeout(VECTORS, memory.tend()).await.unwrap_or_default();
        if left == Left::Compaction {
            told.extend(timeout(FACTS, memory.study()).await.unwrap_or_default());
        }
        Ok(told)
    };
    let waiting = out.waiting("keeping it in memory");
    let told = setup::block_on(tended);
    waiting.finish_and_clear();
    match told {
        Ok(told) => told.iter().for_each(|told| out.warn(told)),
        Err(error) => out.warn(format!("memory was not tended: {error}")),
    }
}
