// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Boards
@testable import GPIO
@testable import USBKeypad

@Suite("A proposed profile", .timeLimit(.minutes(5))) struct BoardProposalTests {
  private func chip(_ label: String, _ names: [String], busy: Set<Int> = []) -> ChipDescription {
    ChipDescription(
      path: "/dev/gpiochip0", label: label,
      lines: names.enumerated().map {
        .init(offset: $0, name: $1, consumer: busy.contains($0) ? "somebody" : nil, isOutput: false)
      })
  }

  private func keypad(_ product: UInt16, port: String) -> KeypadDescription {
    KeypadDescription(
      identity: .init(vendor: 0x1A2C, product: product), port: port, path: "/dev/bus/usb/001/002", hidInterfaces: [0],
      bootInterface: .init(number: 0, endpoint: 0x81, packetBytes: 8))
  }

  private func known() throws -> [BoardProfile] {
    try BoardCatalog.all().map { try $0.profile.get() }.filter { $0.kind == .gpio }
  }

  private func parsed(_ proposal: BoardProposal) throws -> BoardProfile {
    try BoardProfile(parsing: try #require(proposal.toml), file: "proposal")
  }

  @Test("Has the wiring of the board that has such a chip") func hasTheWiringOfTheBoardThatHasSuchAChip() throws {
    let chips = [chip("other", ["a"]), chip("pinctrl-rp1", (0..<54).map { "GPIO\($0)" })]
    let proposal = BoardProposal(chips: chips, keypads: [keypad(0x0E24, port: "1-1")], known: try known())
    #expect(proposal.board == "raspberry-pi-5")
    let profile = try parsed(proposal)
    let model = try BoardCatalog.profile("raspberry-pi-5")
    #expect(profile.lines == model.lines)
    #expect(profile.keypad?.usb?.selection.identity == .init(vendor: 0x1A2C, product: 0x0E24))
    #expect(profile.keypad?.usb?.selection.port == nil)
  }

  @Test("Names no board where several have such a chip") func namesNoBoardWhereSeveralHaveSuchAChip() throws {
    let proposal = BoardProposal(chips: [chip("pinctrl-bcm2835", ["x"])], keypads: [], known: try known())
    #expect(proposal.board == nil)
    #expect(try parsed(proposal).lines?.button.offset == 17)
  }

  @Test("A label with control characters is proposed with a description that has none") func strangeLabel() throws {
    let proposal = BoardProposal(chips: [chip("3x\u{202E}", ["", "", "", ""])], keypads: [], known: [])
    let profile = try parsed(proposal)
    #expect(profile.description == "Button and LED on 3x" && profile.lines?.chips == ["3x\u{202E}"])
  }

  @Test("Uses lines with descriptive names") func usesLinesWithDescriptiveNames() throws {
    let names = ["", "BUZZER", "my deny", "LED_BLUE", "LED_RED", "", "Button \"1\"\\", "led green"]
    let proposal = BoardProposal(chips: [chip("panel", names)], keypads: [], known: [])
    let lines = try #require(try parsed(proposal).lines)
    #expect(lines.chips == ["panel"])
    #expect(lines.button == InputLine(offset: 6, name: "Button \"1\"\\", bias: .pullUp, isActiveLow: true))
    #expect(lines.denyButton?.offset == 2)
    #expect(lines.led.map(\.offset) == [4, 7, 3])
    #expect(lines.buzzer?.offset == 1)
    #expect(try parsed(proposal).keypad == nil)
  }

  @Test("Suggests the first free lines of a chip without names") func suggestsTheFirstFreeLinesOfAChipWithoutNames()
    throws
  {
    let chips = [chip("full", ["", ""], busy: [0]), chip("free", ["", "", "", ""], busy: [1])]
    let profile = try parsed(BoardProposal(chips: chips, keypads: [], known: []))
    #expect(profile.lines?.chips == ["free"])
    #expect(profile.lines?.button.offset == 0 && profile.lines?.led.map(\.offset) == [2])
    #expect(profile.colors == .mono)
  }

  @Test("Says which of several keyboards is the keypad") func saysWhichOfSeveralKeyboardsIsTheKeypad() throws {
    let keypads = [keypad(1, port: "1-1.2"), keypad(1, port: "1-1.3")]
    let profile = try parsed(BoardProposal(chips: [chip("c", ["", ""])], keypads: keypads, known: []))
    #expect(profile.keypad?.usb?.selection.port == "1-1.2")
  }

  @Test("Does not exist without lines") func doesNotExistWithoutLines() {
    #expect(BoardProposal(chips: [chip("c", ["", ""], busy: [1])], keypads: [], known: []).toml == nil)
    #expect(BoardProposal(chips: [], keypads: [], known: []).toml == nil)
  }

  @Test("Takes no control characters from a device", arguments: ["nasty\u{1B}[2J", "tab\there", "line\nbreak = 1"])
  func takesNoControlCharactersFromADevice(name: String) throws {
    let proposal = BoardProposal(chips: [chip("c\u{7F}", [name, ""])], keypads: [], known: [])
    let controls = try #require(proposal.toml).unicodeScalars.filter { $0.properties.generalCategory == .control }
    #expect(Set(controls) == ["\n"])
    _ = try parsed(proposal)
  }
}
