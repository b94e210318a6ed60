extension String {
  /// What may be shown and logged: no line breaks, nothing that moves a cursor, not too much of it.
  public var forPeople: String { forPeople(atMost: 200) }

  /// - Parameter limit: Unicode scalars.
  public func forPeople(atMost limit: Int) -> String {
    String(String.UnicodeScalarView(unicodeScalars.filter { !$0.properties.isDangerousToShow })).cut(atMost: limit)
  }

  /// - Parameter limit: Unicode scalars. The last of them is "…" if not all is there.
  public func cut(atMost limit: Int) -> String {
    guard unicodeScalars.count > limit else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.prefix(limit - 1))) + "…"
  }

  public var hasControlCharacters: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}

extension Unicode.Scalar.Properties {
  fileprivate var isDangerousToShow: Bool {
    switch generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
    default: false
    }
  }
}
