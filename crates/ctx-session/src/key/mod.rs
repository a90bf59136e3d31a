//! Session keys: they identify the conversation to which a message belongs.
//!
//! A key is a path of words separated by `:`. Every shape in use is a variant here, so that code
//! matches on a key instead of splitting strings:
//!
//! | key | meaning |
//! |---|---|
//! | `agent:<agent>:<mainKey>` | the agent's main conversation; `mainKey` is `main` by default |
//! | `agent:<agent>:direct:<peer>` | a direct chat |
//! | `agent:<agent>:<channel>:direct:<peer>` | a direct chat on one channel |
//! | `agent:<agent>:<channel>:<account>:direct:<peer>` | the same, on one account |
//! | `agent:<agent>:<channel>:group:<id>` (or `channel`, `room`) | a shared place |
//! | `agent:<agent>:subagent:<id>` | a subagent |
//! | `agent:<agent>:cron:<job>`, `...:run:<run>` | a scheduled job of an agent |
//! | `agent:<agent>:acp:<id>`, `agent:<agent>:explicit:<id>` | a session named by a client |
//! | `cron:<job>`, `hook:<id>`, `acp:<id>`, `global` | sessions without an agent |
//!
//! Every `agent:` key may end in `:thread:<id>` or `:topic:<id>`.

mod parse;
mod part;

use std::fmt;

use serde_with::{DeserializeFromStr, SerializeDisplay};

pub use part::{FileId, MAX_KEY_BYTES, Name, PeerId};

/// A session key.
///
/// ```
/// use ctx_session::key::{SessionKey, Thread};
///
/// let key: SessionKey = "agent:main:telegram:group:-100:topic:7".parse()?;
/// assert_eq!(key.agent().map(|a| a.as_str()), Some("main"));
/// assert!(matches!(&key, SessionKey::Agent { thread: Some(Thread::Topic(id)), .. } if id.as_str() == "7"));
/// assert_eq!(key.to_string(), "agent:main:telegram:group:-100:topic:7");
/// assert!("agent:../etc:main".parse::<SessionKey>().is_err());
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr,
)]
pub enum SessionKey {
    /// The single shared session.
    Global,
    /// A scheduled job: `cron:<job>`.
    Cron(PeerId),
    /// A webhook call: `hook:<id>`.
    Hook(PeerId),
    /// A session opened by an editor: `acp:<id>`.
    Acp(PeerId),
    /// A session of one agent.
    Agent {
        /// The agent. It is the name of a folder on disk.
        agent: FileId,
        /// The session of the agent.
        scope: AgentScope,
        /// A thread or topic inside it.
        thread: Option<Thread>,
    },
}

/// A session within an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentScope {
    /// The main conversation, by its main key.
    Main(Name),
    /// A direct chat, on any channel.
    Direct {
        /// The other party.
        peer: PeerId,
    },
    /// A direct chat on one channel, optionally on one account.
    ChannelDirect {
        /// The channel, for example `telegram`.
        channel: Name,
        /// The account on that channel.
        account: Option<Name>,
        /// The other party.
        peer: PeerId,
    },
    /// A group, channel or room shared by several people.
    Place {
        /// The channel, for example `discord`.
        channel: Name,
        /// The kind of place.
        kind: ChatKind,
        /// Its id on the channel.
        id: PeerId,
    },
    /// A subagent; the id may be a chain of several.
    Subagent(PeerId),
    /// A scheduled job, optionally one run of it.
    Cron {
        /// The job.
        job: Name,
        /// The run.
        run: Option<PeerId>,
    },
    /// A session opened by an editor.
    Acp(PeerId),
    /// A session that a client named explicitly.
    Explicit(PeerId),
}

/// The kind of a shared place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChatKind {
    /// `group`
    Group,
    /// `channel`
    Channel,
    /// `room`
    Room,
}

impl ChatKind {
    /// Returns the word used in the key.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Room => "room",
        }
    }
}

/// A thread or topic inside a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Thread {
    /// `:thread:<id>`
    Thread(FileId),
    /// `:topic:<id>`
    Topic(FileId),
}

impl Thread {
    /// Returns the id, which is part of the transcript's file name.
    pub(crate) fn id(&self) -> &FileId {
        match self {
            Self::Thread(id) | Self::Topic(id) => id,
        }
    }
}

impl SessionKey {
    /// Returns the main session of an agent, with the main key `main`.
    pub fn main(agent: FileId) -> Self {
        Self::Agent { agent, scope: AgentScope::Main(Name::main()), thread: None }
    }

    /// Returns the agent, if the key names one.
    pub fn agent(&self) -> Option<&FileId> {
        match self {
            Self::Agent { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// Returns the thread or topic, if the key names one.
    pub(crate) fn thread(&self) -> Option<&Thread> {
        match self {
            Self::Agent { thread, .. } => thread.as_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Cron(id) => write!(f, "cron:{id}"),
            Self::Hook(id) => write!(f, "hook:{id}"),
            Self::Acp(id) => write!(f, "acp:{id}"),
            Self::Agent { agent, scope, thread } => {
                write!(f, "agent:{agent}:{scope}")?;
                match thread {
                    Some(Thread::Thread(id)) => write!(f, ":thread:{id}"),
                    Some(Thread::Topic(id)) => write!(f, ":topic:{id}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for AgentScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(key) => write!(f, "{key}"),
            Self::Direct { peer } => write!(f, "direct:{peer}"),
            Self::ChannelDirect { channel, account: None, peer } => {
                write!(f, "{channel}:direct:{peer}")
            }
            Self::ChannelDirect { channel, account: Some(account), peer } => {
                write!(f, "{channel}:{account}:direct:{peer}")
            }
            Self::Place { channel, kind, id } => write!(f, "{channel}:{}:{id}", kind.name()),
            Self::Subagent(id) => write!(f, "subagent:{id}"),
            Self::Cron { job, run: None } => write!(f, "cron:{job}"),
            Self::Cron { job, run: Some(run) } => write!(f, "cron:{job}:run:{run}"),
            Self::Acp(id) => write!(f, "acp:{id}"),
            Self::Explicit(id) => write!(f, "explicit:{id}"),
        }
    }
}
