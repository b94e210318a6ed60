// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms

/// Another program at a card reader. It connects, begins a transaction, and ends it with a reset after the tested
/// program has connected, and before that begins its own transaction; it connects again before the tested program
/// disconnects, and begins a transaction after that. It sees these moments because the tested program reaches pcscd
/// through it.
package final class OtherCardProgram: Sendable {
  /// Uses what is in the first reader, and writes a line each time. An error of pcscd is a line of its own.
  private static let source = """
    import ctypes, os, socket, struct, sys, threading, time

    pcscd, own, resets, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    os.environ["PCSCLITE_CSOCK_NAME"] = pcscd
    library = ctypes.CDLL("libpcsclite.so.1")
    word, handle = ctypes.c_ulong, ctypes.c_long
    SCOPE_SYSTEM, SHARE_SHARED, T0_OR_T1 = word(2), word(2), word(3)
    LEAVE_CARD, RESET_CARD = word(0), word(1)
    # Messages to pcscd.
    DISCONNECT, BEGIN_TRANSACTION, TRANSMIT = 0x06, 0x07, 0x09


    def say(line):
        print(line, flush=True)


    def call(name, *arguments):
        error = getattr(library, name)(*arguments) & 0xFFFFFFFF
        if error:
            say(f"{name} {error:08X}")


    def connect():
        context, card, protocol = handle(), handle(), word()
        names, size = ctypes.create_string_buffer(4096), word(4096)
        call("SCardEstablishContext", SCOPE_SYSTEM, None, None, ctypes.byref(context))
        call("SCardListReaders", context, None, names, ctypes.byref(size))
        call("SCardConnect", context, names, SHARE_SHARED, T0_OR_T1, ctypes.byref(card), ctypes.byref(protocol))
        return context, card


    def use(context, card, disposition):
        call("SCardBeginTransaction", card)
        call("SCardEndTransaction", card, disposition)
        call("SCardDisconnect", card, LEAVE_CARD)
        call("SCardReleaseContext", context)


    # Has the card for a while, beside what is forwarded.
    def hold(context, card, duration):
        call("SCardBeginTransaction", card)

        def end():
            time.sleep(duration)
            say("held")
            call("SCardEndTransaction", card, LEAVE_CARD)
            call("SCardDisconnect", card, LEAVE_CARD)
            call("SCardReleaseContext", context)

        threading.Thread(target=end, daemon=True).start()


    def receive(connection, size):
        received = b""
        while len(received) < size:
            part = connection.recv(size - len(received))
            if not part:
                raise EOFError
            received += part
        return received


    # Each message has its size and its number before it; the command to transmit follows its message.
    def messages(connection):
        try:
            while True:
                head = receive(connection, 8)
                size, number = struct.unpack("=II", head)
                body = receive(connection, size)
                if number == TRANSMIT:
                    body += receive(connection, struct.unpack_from("=I", body, 12)[0])
                yield number, head + body
        except (EOFError, OSError):
            yield None, b""


    def forward_answers(server, program):
        try:
            while answer := server.recv(65536):
                program.sendall(answer)
            program.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


    def serve(program):
        global resets, seconds
        server = socket.socket(socket.AF_UNIX)
        server.connect(pcscd)
        threading.Thread(target=forward_answers, args=(server, program), daemon=True).start()
        connection = None
        for number, message in messages(program):
            # Its message before was answered.
            if connection:
                use(*connection, LEAVE_CARD)
                say("used")
                connection = None
            if number == BEGIN_TRANSACTION and resets > 0:
                resets -= 1
                use(*connect(), RESET_CARD)
                say("reset")
            if number == BEGIN_TRANSACTION and seconds > 0:
                hold(*connect(), seconds)
                seconds = 0
            if number == DISCONNECT:
                connection = connect()
            if number is not None:
                server.sendall(message)
        server.shutdown(socket.SHUT_RDWR)


    listener = socket.socket(socket.AF_UNIX)
    listener.bind(own)
    listener.listen()
    say("listening")
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    """

  /// That of pcscd, for the tested program.
  package let socket: String
  private let program: RunningProgram

  /// - Parameters:
  ///   - resets: before how many attempts of the tested program to begin a transaction it makes a reset.
  ///   - seconds: how long it has a transaction when the tested program first wants one.
  package init(at reader: TestPCSC, resets: Int, holds seconds: Int = 0) throws {
    let (socket, log) = ("\(reader.folder)/other", "\(reader.folder)/other.log")
    self.socket = socket
    program = try RunningProgram(
      "/usr/bin/python3", ["-c", Self.source, reader.socket, socket, String(resets), String(seconds)], errors: log)
    guard program.nextLine() == "listening" else {
      let said = (try? wholeText(of: log)) ?? ""
      throw TestPCSC.StartError(description: "the other program does not listen: \(said.suffix(400))")
    }
  }

  /// The next lines, each within a minute: `reset` before a transaction of the tested program, `held` before
  /// one that had to wait, `used` after it.
  package func lines(_ count: Int) -> [String] {
    var lines: [String] = []
    while lines.count < count, let line = program.nextLine() { lines.append(line) }
    return lines
  }
}
