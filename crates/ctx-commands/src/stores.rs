//! Where a command stores large texts, the values of an engine, and memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Entry, MemoryStore, Store};
use ctx_runtime::{MemoryLocation, Stores};
use ctx_session::key::FileId;
use ctx_session::{FileStore, Home, Transcript, TransientStore};
use ctx_terminal::out::Out;
use tokio::time::timeout;

use crate::args::Fit;
use crate::{selection, setup};

/// Opens the engine values and the memory of the session's agent; both are written only if `lasts`.
/// Engines identify a session by its id, so the values of a session without an id are not kept.
/// Memory identifies such a session by its file.
pub(crate) fn of_session(
    fit: &Fit,
    session: &Path,
    transcript: &Transcript,
    lasts: bool,
) -> Stores {
    let Ok(home) = Home::from_env() else { return Stores::discarding() };
    let agent = agent_of(fit, session);
    let values: Arc<dyn Store> = match transcript.header.id {
        Some(_) => Arc::new(FileStore::at(home.store_dir(&agent))),
        None => Arc::<TransientStore>::default(),
    };
    let memory = home.memory_dir(&agent);
    match lasts {
        true => Stores { values, memory: MemoryLocation::Folder(memory), ..Stores::discarding() },
        false => Stores {
            values: Arc::new(TransientStore::over(values)),
            memory: MemoryLocation::ReadOnly(memory),
            ..Stores::discarding()
        },
    }
}

/// Returns the agent of a session.
pub(crate) fn agent_of(fit: &Fit, session: &Path) -> FileId {
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
    match out.while_waiting("updating memory", || setup::block_on(maintained)) {
        Ok(warnings) => warnings.iter().for_each(|warning| out.warn(warning)),
        Err(error) => out.warn(format!("memory maintenance failed: {error}")),
    }
}
