//! The trait of a context engine.

use crate::Session;
use crate::host::Host;
use crate::protocol::{
    Assembled, Bootstrap, Bootstrapped, Compact, CompactResult, Hello, Info, Result, Row,
    SubagentEnded, SubagentSpawn, TurnStatus,
};

/// A context engine. Only `hello` and `assemble` are required; the other methods do nothing by
/// default. Calls on one engine come one at a time.
///
/// The crate keeps each [`Session`] and applies the host's update before it calls a method. An
/// optional verb is called only if [`Info::verbs`] names it.
pub trait Engine: Send + Sized + 'static {
    /// Creates the engine. `hello.config` is the user's configuration for this engine.
    ///
    /// # Errors
    ///
    /// If the engine cannot run, for example because of its configuration. The host reports the
    /// reason and uses another engine.
    fn hello(hello: &Hello, host: &mut Host<'_>) -> Result<(Self, Info)>;

    /// Decides which messages the next request contains.
    ///
    /// # Errors
    ///
    /// The host then uses its default engine for this request.
    fn assemble(&mut self, session: &Session, host: &mut Host<'_>) -> Result<Assembled>;

    /// Compacts the session permanently. The host calls this only on an engine that has the lease
    /// on compaction.
    ///
    /// # Errors
    ///
    /// The host then compacts with its own method, also if the engine
    /// [declines](CompactResult::declined).
    fn compact(
        &mut self,
        session: &Session,
        request: &Compact,
        host: &mut Host<'_>,
    ) -> Result<CompactResult> {
        let _ = (session, request, host);
        Ok(CompactResult::declined("the engine leaves compaction to its host"))
    }

    /// Called once for each message that is added to the session, however often the host reports
    /// it. The message becomes a row of [`Session::rows`] with the next request.
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

    /// Optional. A session that has a history was opened.
    ///
    /// # Errors
    ///
    /// Counts as a failure of the engine.
    fn bootstrap(&mut self, request: &Bootstrap, host: &mut Host<'_>) -> Result<Bootstrapped> {
        let _ = (request, host);
        Ok(Bootstrapped::default())
    }

    /// Optional. The turn's messages were stored permanently. A repeated key must change nothing.
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

    /// Optional. Runs maintenance, after a turn.
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
    /// They are logged.
    fn dispose(&mut self, host: &mut Host<'_>) -> Result<()> {
        let _ = host;
        Ok(())
    }
}
