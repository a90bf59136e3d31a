//! A server on loopback, with a thread of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

/// A server that listens on loopback until it is dropped.
pub(super) struct Loopback {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Runs `serve` on a thread of that name, until it is told to stop. When this returns, it
    /// listens at the port, or at any that is free if that is 0.
    pub(super) fn start<S, F>(name: &str, port: u16, serve: S) -> io::Result<Self>
    where
        S: FnOnce(tokio::net::TcpListener, oneshot::Receiver<()>) -> F + Send + 'static,
        F: Future<Output = ()>,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(serve(listener, stopped)))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Its URL, without a path and without a slash at the end.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
