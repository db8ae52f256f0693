//! Numbers out of bytes. What is missing at the end is zero, so that every input means something.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        first
    }

    /// A little-endian number of so many bytes, at most eight.
    pub(crate) fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |sum, place| sum | u64::from(self.byte()) << (8 * place))
    }

    /// A number of any size, small ones as likely as large ones.
    pub(crate) fn wild(&mut self) -> u64 {
        let bytes = usize::from(self.byte() % 9);
        self.number(bytes)
    }

    /// A zero stands for `None`, else the rest of the byte decides nothing.
    pub(crate) fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() != 0).then(|| read(self))
    }

    /// All up to the next `end`, or all there is.
    pub(crate) fn until(&mut self, end: u8) -> &'a [u8] {
        let mut parts = self.rest.splitn(2, |&byte| byte == end);
        let part = parts.next().unwrap_or_default();
        self.rest = parts.next().unwrap_or_default();
        part
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
