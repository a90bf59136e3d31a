//! A connection that can be made to fail at any byte.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::locked;

/// The scheduled failure of a connection.
#[derive(Debug, Default)]
pub(super) enum Mode {
    /// None.
    #[default]
    Sound,
    /// Close after this many more bytes.
    CloseAfter(usize),
    /// Close once everything written is sent.
    CloseWhenFlushed,
    /// Send these bytes instead of what is written; then close.
    Instead(Bytes),
}

/// A handle that schedules a connection's failure while it is in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault(Arc<Mutex<Mode>>);

impl Fault {
    pub(super) fn set(&self, mode: Mode) {
        *locked(&self.0) = mode;
    }
}

/// A connection that may fail.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    fault: Fault,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, fault: Fault) -> Self {
        Self { stream, fault }
    }
}

/// The error that hyper gets when a connection is closed on purpose.
fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "closed by the script")
}

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Without `unsafe`, hyper's cursor can only be filled by copying.
        let mut space = [0u8; 16 * 1024];
        let room = space.len().min(cursor.remaining());
        let Some(space) = space.get_mut(..room) else { return Poll::Ready(Ok(())) };
        let mut buffer = ReadBuf::new(space);
        let read = Pin::new(&mut self.get_mut().stream).poll_read(cx, &mut buffer);
        read.map_ok(|()| cursor.put_slice(buffer.filled()))
    }
}

impl Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, fault } = self.get_mut();
        let mut stream = Pin::new(stream);
        let mut mode = locked(&fault.0);
        match &mut *mode {
            Mode::Sound | Mode::CloseWhenFlushed => stream.poll_write(cx, bytes),
            Mode::CloseAfter(left) => {
                let part = bytes.get(..*left).unwrap_or(bytes);
                if part.is_empty() {
                    return Poll::Ready(Err(closed()));
                }
                let written = std::task::ready!(stream.poll_write(cx, part))?;
                *left -= written;
                Poll::Ready(Ok(written))
            }
            Mode::Instead(all) => {
                while all.has_remaining() {
                    let written = std::task::ready!(stream.as_mut().poll_write(cx, all))?;
                    all.advance(written);
                }
                Poll::Ready(Err(closed()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, fault } = self.get_mut();
        std::task::ready!(Pin::new(stream).poll_flush(cx))?;
        let mode = locked(&fault.0);
        match *mode {
            Mode::CloseWhenFlushed => Poll::Ready(Err(closed())),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
