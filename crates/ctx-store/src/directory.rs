//! The entries of sessions.

use async_trait::async_trait;
use ctx_core::Result;

use crate::SessionName;

/// The entry of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its version: another one after each change.
    pub version: u64,
    /// The session's entry of `sessions.json`: a JSON object.
    pub json: String,
}

/// Holds the entries of sessions.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Returns the entry of a session.
    async fn get(&self, session: &SessionName) -> Result<Option<DirectoryEntry>>;

    /// Sets the entry of a session if its version is `seen`, and returns the new version. `None`
    /// means that the entry does not exist.
    ///
    /// # Errors
    ///
    /// [`changed_entry`](crate::changed_entry) if the entry has another version.
    async fn compare_and_put(
        &self,
        session: &SessionName,
        seen: Option<u64>,
        json: &str,
    ) -> Result<u64>;

    /// Returns the entries of an agent whose keys follow `after`, in the order of their keys; `most`
    /// at the most.
    async fn list(
        &self,
        agent: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(SessionName, DirectoryEntry)>>;

    /// Returns the agents that have sessions, sorted.
    async fn agents(&self) -> Result<Vec<String>>;

    /// Removes the entry of a session if its version is `seen`. Does nothing if there is none.
    ///
    /// # Errors
    ///
    /// [`changed_entry`](crate::changed_entry) if the entry has another version.
    async fn retire(&self, session: &SessionName, seen: u64) -> Result<()>;
}

/// The number of entries of a page.
const PAGE: usize = 500;

/// Pages through the entries of all agents.
#[derive(Debug)]
pub struct EntryPages {
    /// The agents that are left, the next one last.
    agents: Vec<String>,
    /// The last key of the page before.
    after: Option<String>,
}

impl EntryPages {
    /// Begins with the first agent.
    ///
    /// # Errors
    ///
    /// Those of [`Directory::agents`].
    pub async fn of(directory: &(impl Directory + ?Sized)) -> Result<Self> {
        let mut agents = directory.agents().await?;
        agents.reverse();
        Ok(Self { agents, after: None })
    }

    /// Returns the next page, with entries of one agent; `None` after the last one.
    ///
    /// # Errors
    ///
    /// Those of [`Directory::list`].
    pub async fn next(
        &mut self,
        directory: &(impl Directory + ?Sized),
    ) -> Result<Option<Vec<(SessionName, DirectoryEntry)>>> {
        while let Some(agent) = self.agents.last() {
            let page = directory.list(agent, self.after.as_deref(), PAGE).await?;
            self.after = page.last().map(|(name, _)| name.key.clone());
            if !page.is_empty() {
                return Ok(Some(page));
            }
            self.agents.pop();
        }
        Ok(None)
    }
}
