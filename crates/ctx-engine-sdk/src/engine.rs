//! What an engine is.

use crate::Session;
use crate::host::Host;
use crate::protocol::{
    Assembled, Bootstrap, Bootstrapped, Compact, CompactResult, Hello, Info, Result, Row,
    SubagentEnded, SubagentSpawn, TurnStatus,
};

/// A context engine. Only `hello` and `assemble` must be written; the rest has defaults that do
/// nothing. Calls on one engine come one at a time.
///
/// The crate keeps each [`Session`]: what the host tells of it is taken in before a method is called.
/// An optional verb is only called if [`Info::verbs`] names it.
pub trait Engine: Send + Sized + 'static {
    /// Comes to life. `hello.config` is what the user's configuration says to this engine.
    ///
    /// # Errors
    ///
    /// If it cannot work so, for example because of the configuration. The host says why, and runs
    /// another engine.
    fn hello(hello: &Hello, host: &mut Host<'_>) -> Result<(Self, Info)>;

    /// A request is about to be made: what shall go out?
    ///
    /// # Errors
    ///
    /// The host then lets its default engine answer.
    fn assemble(&mut self, session: &Session, host: &mut Host<'_>) -> Result<Assembled>;

    /// The session is to be made smaller for good. The host asks only an engine that has the lease
    /// on compaction.
    ///
    /// # Errors
    ///
    /// The host then compacts its own way, as it does if this [declines](CompactResult::declined).
    fn compact(
        &mut self,
        session: &Session,
        request: &Compact,
        host: &mut Host<'_>,
    ) -> Result<CompactResult> {
        let _ = (session, request, host);
        Ok(CompactResult::declined("the engine leaves compaction to its host"))
    }

    /// A message was added to the session. It comes as a row of [`Session::rows`] with the next
    /// request. Called once for each message, however often the host tells of it.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn ingest(
        &mut self,
        session: &Session,
        row: &Row,
        is_heartbeat: bool,
        host: &mut Host<'_>,
    ) -> Result<bool> {
        let _ = (session, row, is_heartbeat, host);
        Ok(true)
    }

    /// Optional. A session came up that has a history.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn bootstrap(&mut self, request: &Bootstrap, host: &mut Host<'_>) -> Result<Bootstrapped> {
        let _ = (request, host);
        Ok(Bootstrapped::default())
    }

    /// Optional. The turn's messages are stored for good. The same key again must change nothing.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine. The host will commit the turn again.
    fn commit_turn(
        &mut self,
        session: &Session,
        advancement_key: &str,
        host: &mut Host<'_>,
    ) -> Result<TurnStatus> {
        let _ = (session, advancement_key, host);
        Ok(TurnStatus::Committed)
    }

    /// Optional. The turn is over.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn after_turn(&mut self, session: &Session, host: &mut Host<'_>) -> Result<()> {
        let _ = (session, host);
        Ok(())
    }

    /// Optional. There is time for housekeeping.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn maintain(&mut self, session: &Session, host: &mut Host<'_>) -> Result<()> {
        let _ = (session, host);
        Ok(())
    }

    /// Optional. A subagent is about to start.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn prepare_subagent_spawn(&mut self, spawn: &SubagentSpawn, host: &mut Host<'_>) -> Result<()> {
        let _ = (spawn, host);
        Ok(())
    }

    /// Optional. The subagent did not start after all.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn rollback_subagent_spawn(
        &mut self,
        spawn: &SubagentSpawn,
        host: &mut Host<'_>,
    ) -> Result<()> {
        let _ = (spawn, host);
        Ok(())
    }

    /// Optional. A subagent ended.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn on_subagent_ended(&mut self, ended: &SubagentEnded, host: &mut Host<'_>) -> Result<()> {
        let _ = (ended, host);
        Ok(())
    }

    /// The engine is not needed any more.
    ///
    /// # Errors
    ///
    /// Are logged.
    fn dispose(&mut self, host: &mut Host<'_>) -> Result<()> {
        let _ = host;
        Ok(())
    }
}
